//! Which URLs are accepted, and what is said of the others.

use leaseproof_queue::{Error, Queue};

#[tokio::test]
async fn an_unknown_scheme_is_named_with_the_accepted_ones() {
    for (url, named) in [("redis://me:secret@db/x", "redis"), ("mongodb://db", "mongodb"), ("file:x.db", "file")] {
        let error = Queue::connect(url).await.err().unwrap();
        assert!(matches!(&error, Error::UnknownScheme { scheme, .. } if scheme == named), "{error:?}");
        let said = error.to_string();
        assert!(said.contains("sqlite:PATH") && said.contains("postgres://"), "{said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

#[tokio::test]
async fn a_url_that_does_not_parse_says_why() {
    let bad = [
        "",
        "queue.db",
        "postgres://db:notaport/x",
        "mysql://db:notaport/x",
        "mysql://me@db",
        "mariadb://me@db/",
        "mysql://db/x?ssl-mode=dance",
        "mysql://db/x?charset=latin1",
        "sqlite:x.db?mode=dance",
        "sqlite:",
        "sqlite://",
        "sqlite:?mode=rwc",
        "postgres:me@db/x",
        "postgresql:x",
        "sqlite::memory:",
    ];
    for url in bad {
        let error = match Queue::connect(url).await {
            Err(error) => error,
            Ok(_) => panic!("{url:?} was accepted"),
        };
        assert!(matches!(error, Error::BadUrl { .. }), "{url:?}: {error:?}");
        assert!(error.to_string().contains("accepted are sqlite:PATH"), "{error}");
    }
}

#[tokio::test]
async fn a_password_is_never_shown() {
    let bad = [
        "postgres://me:secret@db:notaport/x",
        "postgres://db:notaport/x?password=secret",
        "postgres://db:notaport/x?user=me&password=secret&sslmode=disable",
        // Parts of a password that should have been escaped: the usual reason why a URL does not parse.
        "postgres://me:secret/secret@db/x",
        "postgres://me:secret@secret:notaport@db:notaport/x",
        "me:secret@db/x",
        "mysql:me:secret@db",
        "mysql://me:secret@db:notaport/x",
        "mysql://me:secret@db",
        "mysql://me:secret@db/x?password=secret",
        "redis://me:secret@db@other/x",
    ];
    for url in bad {
        let error = Queue::connect(url).await.err().unwrap();
        for text in [error.to_string(), format!("{error:?}")] {
            assert!(!text.contains("secret"), "{url}: {text}");
        }
    }
}
