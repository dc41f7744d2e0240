//! `leaseproof explore`: one world of the model in a browser.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};

use leaseproof_model::check::{ablation_world, default_worlds};
use leaseproof_model::explorer::serve;
use leaseproof_model::world::{World, WorldError};
use leaseproof_rules::{Guard, Guards, Kind, Property};
use serde::Serialize;

use crate::cli::ExploreArgs;
use crate::failure::Failure;
use crate::style::{Tone, paint, print, print_json};
use crate::table::layout;

/// Serves until the process is ended; or lists the worlds.
pub fn run(args: &ExploreArgs) -> Result<(), Failure> {
    let worlds = default_worlds().map_err(internal)?;
    if args.list {
        return list(&worlds, args.json);
    }
    let world = choose(worlds, args.world.as_deref(), args.without)?;
    let address = free_address(&args.address, args.allow_remote)?;
    let serving = Serving {
        url: format!("http://{address}/"),
        world: &world.name,
        without: args.without.map(Guard::name),
        design: "lease",
    };
    match args.json {
        true => print_json(&serving)?,
        false => print(&announcement(&serving, args.without))?,
    }
    serve(world, address);
    Ok(())
}

/// `explore --json`. Fields are only ever added, at the end.
#[derive(Serialize)]
struct Serving<'a> {
    url: String,
    world: &'a str,
    without: Option<&'a str>,
    design: &'a str,
}

/// An entry of `explore --list --json`. Fields are only ever added, at the end.
#[derive(Serialize)]
struct Listed<'a> {
    number: usize,
    world: &'a str,
}

fn internal(error: WorldError) -> Failure {
    Failure::Internal(error.to_string())
}

fn list(worlds: &[World], json: bool) -> Result<(), Failure> {
    let listed = (1..).zip(worlds).map(|(number, world)| Listed { number, world: &world.name });
    if json {
        return print_json(&listed.collect::<Vec<_>>());
    }
    let rows: Vec<Vec<String>> = listed.map(|entry| vec![entry.number.to_string(), entry.world.to_owned()]).collect();
    let mut lines = layout(&["", "world"], &rows);
    lines[0] = paint(Tone::Strong, &lines[0]);
    print(&(lines.join("\n") + "\n"))
}

fn announcement(serving: &Serving<'_>, without: Option<Guard>) -> String {
    let off = without.map_or(String::new(), |guard| format!(", without {guard}"));
    let mut out = format!("{}, in stateright's Explorer{off}: {}\n", serving.world, paint(Tone::Strong, &serving.url));
    out.push_str("“Run to completion” checks the properties and links what it finds; Ctrl-C ends it.\n");
    if let Some(guard) = without
        && leaseproof_model::check::protects(guard).kind() == Kind::Eventually
    {
        let property = Property::EventuallyResolved.name();
        out.push_str(&format!("It does not show {property}: `leaseproof check --without {guard}` does.\n"));
    }
    out
}

/// The world that is asked for, by number or by a part of its name that no other has.
fn choose(worlds: Vec<World>, asked: Option<&str>, without: Option<Guard>) -> Result<World, Failure> {
    let world = match (asked, without) {
        (None, Some(guard)) => return ablation_world(guard).map_err(internal),
        (None, None) => named(worlds, "1")?,
        (Some(name), _) => named(worlds, name)?,
    };
    let world = world.guards(without.map_or(Guards::ALL, Guards::without));
    world.validate().map_err(|error| {
        let guard = without.map_or(String::new(), |guard| format!(" without {guard}"));
        Failure::BadInput(format!("{:?}{guard} does not fit the model: {error}; choose another world", world.name))
    })?;
    Ok(world)
}

fn named(worlds: Vec<World>, asked: &str) -> Result<World, Failure> {
    let count = worlds.len();
    let complain =
        |what: String| Failure::BadInput(format!("--world {asked:?}: {what}; see leaseproof explore --list"));
    if let Ok(number) = asked.parse::<usize>() {
        let world = number.checked_sub(1).and_then(|index| worlds.into_iter().nth(index));
        return world.ok_or_else(|| complain(format!("there are worlds 1 to {count}")));
    }
    if let Some(world) = worlds.iter().find(|world| world.name == asked) {
        return Ok(world.clone());
    }
    let mut fitting: Vec<World> = worlds.into_iter().filter(|world| world.name.contains(asked)).collect();
    match (fitting.pop(), fitting.len()) {
        (None, _) => Err(complain("no world has this in its name".to_owned())),
        (Some(world), 0) => Ok(world),
        (Some(_), others) => Err(complain(format!("{} worlds have this in their names", others + 1))),
    }
}

/// The address with its port filled in, if it can be listened on now.
///
/// stateright does not tell which port it was given, nor that it was refused one; so the port is taken and given back
/// here. Somebody may take it in between, which ends the command as a defect would.
fn free_address(asked: &str, allow_remote: bool) -> Result<SocketAddr, Failure> {
    let complain = |what: String| Failure::BadInput(format!("--address {asked}: {what}"));
    let addresses: Vec<SocketAddr> = asked
        .to_socket_addrs()
        .map_err(|error| complain(format!("{error}; accepted is HOST:PORT, e.g. 127.0.0.1:3000")))?
        .collect();
    if let Some(remote) = addresses.iter().find(|address| !address.ip().is_loopback())
        && !allow_remote
    {
        let ip = remote.ip();
        return Err(complain(format!(
            "{ip} can be reached from other machines, and the page has no password; --allow-remote if that is meant"
        )));
    }
    let listener = TcpListener::bind(&addresses[..]).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => {
            complain("the port is in use by another program; choose another, 0 takes a free one".to_owned())
        }
        _ => complain(format!("can not be listened on: {error}")),
    })?;
    listener.local_addr().map_err(|error| Failure::Internal(error.to_string()))
}
