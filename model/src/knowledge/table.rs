//! The line as tables, for people.

use leaseproof_rules::{Observation, OnUnknown, Progress, Signal};

use super::class::{class_text, classes_text, decision_text};
use super::combinations::{Declaration, Form, declaration_text, plain_instruments};
use super::examine::{ClassRow, Combination, Settles, Verdict};
use super::judge::Finding;
use super::slow::SlowOrDead;

/// A class as a table shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// What the sweeper sees.
    pub sees: String,
    /// What the rules decide.
    pub decides: String,
    /// On which side of the line it is, and why.
    pub verdict: String,
    /// What would be safe. With `*` what only postpones, with `?` what ends only if handlers do.
    pub safe: String,
    /// What would not, and what it would break.
    pub breaks: String,
}

impl Line {
    /// The same sight, decision and verdict, and the same is safe. Of several things that something unsafe breaks the
    /// nearest is found, and that may differ.
    fn is_like(&self, other: &Line) -> bool {
        let but_breaks = |line: &Line| Line { breaks: String::new(), ..line.clone() };
        but_breaks(self) == but_breaks(other)
    }
}

/// Declarations with the same table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group<'a> {
    /// The first of them, for its witnesses.
    pub first: &'a Combination,
    /// All of them.
    pub declarations: Vec<Declaration>,
    /// Their classes; those that differ in nothing but how many steps are done are one.
    pub lines: Vec<Line>,
    /// By line: the first of its classes, of the first declaration.
    pub rows: Vec<&'a ClassRow>,
}

/// Brings declarations with equal lines together, in the order of the first of each.
pub fn groups(all: &[Combination]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for combination in all {
        let (lines, rows) = lines(combination);
        let like = |group: &&mut Group<'_>| {
            let same = group.lines.len() == lines.len() && group.lines.iter().zip(&lines).all(|(a, b)| a.is_like(b));
            same && group.first.is_sound() == combination.is_sound()
        };
        match groups.iter_mut().find(like) {
            Some(group) => group.declarations.push(combination.declaration),
            None => groups.push(Group { first: combination, declarations: vec![combination.declaration], lines, rows }),
        }
    }
    groups
}

/// The verdict in words.
pub fn verdict_text(row: &ClassRow) -> String {
    match row.verdict {
        Verdict::Automatic => "automatic".to_owned(),
        Verdict::Person if row.pair.is_some() => "person: two cases look the same".to_owned(),
        Verdict::Person => "person: nothing automatic is safe and settles it".to_owned(),
        Verdict::Declined { why, .. } => format!("person, by policy: {why}"),
        Verdict::CouldBeAutomatic(decision) => {
            format!("COULD BE AUTOMATIC: {}", decision_text(&row.class, decision))
        }
        Verdict::Unknown => "unknown: a search was cut".to_owned(),
    }
}

fn lines(combination: &Combination) -> (Vec<Line>, Vec<&ClassRow>) {
    let but_done = |class: &Observation| Observation {
        progress: class.progress.map(|progress| Progress { done: 0, ..progress }),
        ..*class
    };
    let mut lines: Vec<(Line, &ClassRow, Vec<u32>)> = Vec::new();
    for row in &combination.classes {
        let line = line(combination, row);
        let done = row.class.progress.map(|progress| progress.done);
        let like = |(other, of, _): &&mut (Line, &ClassRow, Vec<u32>)| {
            let other = Line { sees: line.sees.clone(), ..other.clone() };
            but_done(&of.class) == but_done(&row.class) && other.is_like(&line)
        };
        match lines.iter_mut().find(like) {
            Some((_, _, all)) => all.extend(done),
            None => lines.push((line, row, done.into_iter().collect())),
        }
    }
    let text = |row: &ClassRow, done: &[u32]| classes_text(&combination.policy, &row.class, done);
    lines.into_iter().map(|(line, row, done)| (Line { sees: text(row, &done), ..line }, row)).unzip()
}

fn line(combination: &Combination, row: &ClassRow) -> Line {
    let text = |decision| decision_text(&row.class, decision);
    let mut safe = Vec::new();
    let mut breaks = Vec::new();
    for candidate in &row.candidates {
        let mark = match candidate.settles {
            Some(Settles::No) => "*",
            Some(Settles::IfHandlersEnd) => "?",
            Some(Settles::Yes) | None => "",
        };
        match &candidate.finding {
            Finding::Safe { .. } => safe.push(format!("{}{mark}", text(candidate.decision))),
            Finding::Refuted(against) => {
                breaks.push(format!("{}: {}", text(candidate.decision), against.property));
            }
            Finding::Skipped => breaks.push(format!("{}: search cut", text(candidate.decision))),
        }
    }
    Line {
        sees: class_text(&combination.policy, &row.class),
        decides: text(row.decided),
        verdict: verdict_text(row),
        safe: safe.join("; "),
        breaks: breaks.join("; "),
    }
}

/// The declarations of a group in words.
pub fn group_title(group: &Group<'_>) -> String {
    let words: Vec<String> = group.declarations.iter().map(|declaration| declaration_text(*declaration)).collect();
    words.join(" · ")
}

const HEAD: &str = "# The decision table\n\n\
Generated; do not edit. A test holds it against what is computed.\n\n\
```sh\ncargo run -- check --decisions --markdown > docs/decision-table.md\n```\n\n\
What a sweeper may decide, by what it can see and by how the outside call is declared, in free worlds of one task and \
two executors (`model/src/knowledge`; where that would be too large, one executor, whose calls outlive it). A decision is **safe** iff the system that takes it there, and follows the rules \
everywhere else, keeps every property of the design, in every reachable state and on every fair run. It **settles** the \
case iff from wherever it is taken the task can then come to an end by itself. What is marked `*` is safe but only \
postpones; `?` is safe and comes to an end only if the handler does. The rules are *sound*: what they decide is safe \
everywhere. They are *maximal*: where they ask for a person, nothing automatic is both safe and settles it, except as the \
policy says.\n\n\
Instruments: *key*, the third party knows a repeated call (E1); *query*, it can be asked (E2); *token*, it refuses older \
execution tokens (E6); *checkpoints*, it is made in steps with journal entries of their own (E4); *outbox*, a relay makes \
it (E3); *compensation*, a step can be undone (E5). *Else* is what the owner of the task wants where they do not help (E7). One attempt and one lost \
owner are forgiven in these worlds: *interruptions spent* is the second loss. What breaks is the nearest \
of what may; where declarations, or cases with more or fewer steps done, differ in nothing else, it is that of the first.\n";

/// Which table is whose, and how much of the usual case, an owner lost for the first time, goes to a person.
fn index(groups: &[Group<'_>]) -> String {
    let cell = |declaration: Declaration| {
        let holds = |(_, group): &(usize, &Group<'_>)| group.declarations.contains(&declaration);
        let Some((place, group)) = (1..).zip(groups).find(holds) else { return "–".to_owned() };
        let first = &group.first;
        let usual = |row: &&ClassRow| {
            row.class.signal == Signal::LeaseExpired && row.class.interruptions < first.policy.max_interruptions
        };
        let rows: Vec<&ClassRow> = first.classes.iter().filter(usual).collect();
        let by_a_person = rows.iter().filter(|row| row.verdict != Verdict::Automatic).count();
        let share = match by_a_person {
            0 => "automatic".to_owned(),
            some => format!("{some} of {} to a person", rows.len()),
        };
        format!("[{place}](#table-{place}): {share}")
    };
    let mut out = format!(
        "\n# Which table\n\nIn each field: the table, and how many of the cases go to a person in which an owner is lost for the \
         first time.\n\nNo outside call: {}\n",
        cell(None)
    );
    for form in Form::ALL {
        out.push_str(&format!("\n**{}**\n\n|", form.words()));
        let choices = form.choices();
        for on_unknown in choices {
            out.push_str(&format!(" | else {}", on_unknown.name()));
        }
        out.push_str(&format!(" |\n|---{}|\n", "|---".repeat(choices.len())));
        for plain in plain_instruments() {
            let calls: Vec<String> = choices.iter().map(|&choice| cell(Some(form.call(plain, choice)))).collect();
            let name = declaration_text(Some(Form::Whole.call(plain, OnUnknown::Escalate)));
            let name = name.trim_end_matches(", else escalate");
            out.push_str(&format!("| {name} | {} |\n", calls.join(" | ")));
        }
    }
    out.push_str("\n# The tables\n");
    out
}

/// The page `docs/decision-table.md`.
pub fn markdown(all: &[Combination], twins: Option<&SlowOrDead>) -> String {
    let groups = groups(all);
    let mut out = HEAD.to_owned();
    out.push_str(&index(&groups));
    let mut pairs = String::new();
    let mut number = 0;
    for (place, group) in (1..).zip(&groups) {
        out.push_str(&format!("\n## Table {place}\n\n{}\n\n", group_title(group)));
        if !group.first.is_sound() {
            out.push_str("**Not sound.**\n");
            continue;
        }
        out.push_str(
            "| What is seen | The rules | Verdict | Safe | Not safe, and what breaks |\n|---|---|---|---|---|\n",
        );
        for (line, row) in group.lines.iter().zip(&group.rows) {
            let mut verdict = line.verdict.clone();
            if row.pair.is_some() {
                number += 1;
                verdict += &format!(" ([pair {number}](#pair-{number}))");
                pairs.push_str(&pair_text(number, group.first, row));
            }
            let Line { sees, decides, safe, breaks, .. } = line;
            out.push_str(&format!("| {sees} | {decides} | {verdict} | {safe} | {breaks} |\n"));
        }
    }
    out.push_str("\n# Cases that look the same\n\nShortest runs, found by the exact checker. What would be right is what an onlooker who knows all would choose.\n");
    out.push_str(&pairs);
    out.push_str(&example(all));
    if let Some(twins) = twins {
        out.push_str(&twins_text(twins));
    }
    out
}

fn steps(run: &[String]) -> String {
    let mut number = 0;
    let lines = run.iter().map(|step| {
        if step.starts_with("from here on") {
            return format!("   - *{step}*\n");
        }
        number += 1;
        format!("{number}. {step}\n")
    });
    lines.collect()
}

fn pair_text(number: usize, combination: &Combination, row: &ClassRow) -> String {
    let Some(pair) = &row.pair else { return String::new() };
    let mut out = format!(
        "\n## Pair {number}\n\n{}: {}.\n",
        declaration_text(combination.declaration),
        class_text(&combination.policy, &row.class)
    );
    for (name, side) in [("One", &pair.first), ("The other", &pair.second)] {
        let right: Vec<String> = side.right.iter().map(|decision| decision_text(&row.class, *decision)).collect();
        out.push_str(&format!("\n{name}. Right would be: **{}**.\n\n{}", right.join("** or **"), steps(&side.run)));
        out.push_str(&format!("\n> {}\n", side.state));
    }
    out
}

/// Where no two cases look the same and a person is needed all the same: what each thing the system could do leads to.
fn example(all: &[Combination]) -> String {
    let mut out = "\n# Cases in which nothing automatic is right\n\nShown without an outside call; with one the runs are longer, and all are in `check --decisions --json`.\n".to_owned();
    let Some(plain) = all.iter().find(|combination| combination.declaration.is_none()) else { return String::new() };
    for row in plain.classes.iter().filter(|row| row.verdict == Verdict::Person && row.pair.is_none()) {
        out.push_str(&format!("\n## {}\n", class_text(&plain.policy, &row.class)));
        for candidate in &row.candidates {
            if let Finding::Refuted(against) = &candidate.finding {
                let decision = decision_text(&row.class, candidate.decision);
                out.push_str(&format!(
                    "\nTo **{decision}** breaks *{}*:\n\n{}",
                    against.property.sentence(),
                    steps(&against.steps)
                ));
            }
        }
    }
    out
}

fn twins_text(twins: &SlowOrDead) -> String {
    let mut out = "\n# Dead or slow (U1)\n\nThe same row, to the bit. Of the first owner nothing more will come: to wait is to wait for ever. The second has done \
         its work, stands still, and will say so, which still counts: to run the task again takes its claim for nothing. Only one thing that takes time is in either run: the \
         lease ends. However long it is, a dead owner says nothing in it and a slow one may; so these are runs for every \
         lease length, and no length tells the two apart. It only chooses how long the first waits, and how slow the \
         second has to be.\n"
        .to_owned();
    for (name, owner) in [("dead", &twins.dead), ("slow", &twins.slow)] {
        out.push_str(&format!("\n## The owner is {name}\n\n{}", steps(&owner.run)));
    }
    out
}
