//! Goal: docs/requirements.md tells the truth about where each requirement is met.
//! Method: every id has one row, every place exists and contains what it is said to, every story names the id.

use std::collections::BTreeSet;
use std::path::Path;

use leaseproof_scenarios::REQUIREMENTS;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// What does not exist yet: ids whose place is "none", by column. Everything else must be there.
const NOT_YET: [(&str, &str); 4] =
    [("model", "S4 U2 H2"), ("code", "U1 E3 E4 H1"), ("story", "T1 A2 M4 U2 E-C E3 E4 E5 H1 H2 H3 H4"), ("test", "U2")];

/// Id and the four places.
fn rows() -> Vec<(String, Vec<String>)> {
    let text = std::fs::read_to_string(Path::new(ROOT).join("docs/requirements.md")).unwrap();
    let table = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| Id "));
    table
        .map(|line| {
            let cells: Vec<String> = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
            assert_eq!(cells.len(), 6, "{line}");
            (cells[0].clone(), cells[2..].to_vec())
        })
        .collect()
}

#[test]
fn every_requirement_has_exactly_one_row() {
    let ids: Vec<String> = rows().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, REQUIREMENTS);
}

#[test]
fn every_place_is_there_and_says_what_it_is_said_to_say() {
    let mut wrong = Vec::new();
    for (id, places) in rows() {
        for place in places.iter().filter(|place| *place != "none") {
            let place = place.trim_matches('`');
            let (file, text) = place.split_once("::").map_or((place, None), |(file, text)| (file, Some(text)));
            match std::fs::read_to_string(Path::new(ROOT).join(file)) {
                Err(error) => wrong.push(format!("{id}: {file}: {error}")),
                Ok(content) if text.is_some_and(|text| !content.contains(text)) => {
                    wrong.push(format!("{id}: {file} has no {text:?}"));
                }
                Ok(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_story_of_a_requirement_names_it() {
    let mut stories = leaseproof_scenarios::stories().unwrap();
    stories.extend(leaseproof_scenarios::ablations().unwrap());
    stories.extend(leaseproof_scenarios::designs().unwrap());
    for (id, places) in rows() {
        let Some((_, name)) = places[2].trim_matches('`').rsplit_once('/') else { continue };
        let name = name.trim_end_matches(".toml");
        let story = stories.iter().find(|story| story.name == name).unwrap_or_else(|| panic!("{id}: no story {name}"));
        assert!(story.requirements.contains(&id), "{id}: {name} names {:?}", story.requirements);
    }
}

#[test]
fn what_a_story_bears_on_is_not_called_missing() {
    let named: BTreeSet<String> =
        leaseproof_scenarios::stories().unwrap().into_iter().flat_map(|story| story.requirements).collect();
    for (id, places) in rows().into_iter().filter(|(id, _)| named.contains(id)) {
        assert!(places[1] != "none" || id == "U1", "{id} has stories and no code");
    }
}

#[test]
fn none_stands_only_where_something_is_known_not_to_be_there() {
    for (column, (name, not_yet)) in NOT_YET.iter().enumerate() {
        let missing: BTreeSet<String> =
            rows().into_iter().filter(|(_, places)| places[column] == "none").map(|(id, _)| id).collect();
        let expected: BTreeSet<String> = not_yet.split(' ').map(str::to_owned).collect();
        assert_eq!(missing, expected, "{name}");
    }
}
