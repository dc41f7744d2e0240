//! Stories made by rule: what they are made of.

/// A story without faults in which one node comes to some protocol points.
pub struct Basic {
    /// For the names of stories.
    pub name: &'static str,
    /// Of the policy, besides lease and heartbeat.
    policy: &'static str,
    /// How the runs of its task end.
    ends: &'static str,
    /// What it takes to get there.
    before: &'static str,
    /// The node whose points these are.
    pub node: &'static str,
    /// The exchanges that it comes to.
    pub ops: &'static [&'static str],
}

const DEAD: &str = "[[faults]]\nafter = \"12s\"\non = \"w1\"\ndo = \"crash\"\n";
const SILENT: &str = "[[faults]]\nat = \"call.reply\"\non = \"w1\"\ndo = \"lose\"\n";
const SILENT_DEAD: &str = "[[faults]]\nat = \"call.reply\"\non = \"w1\"\ndo = \"crash\"\n";

/// Among them every point of every node.
pub const BASICS: [Basic; 6] = [
    Basic {
        name: "works",
        policy: "",
        ends: "\"error\", \"ok\"",
        before: "",
        node: "w1",
        ops: &["claim", "heartbeat", "intent", "call", "outcome", "retry", "complete"],
    },
    Basic { name: "asks", policy: "", ends: "\"ok\"", before: SILENT, node: "w1", ops: &["query"] },
    Basic { name: "bad", policy: "", ends: "\"bad_input\"", before: "", node: "w1", ops: &["give_up"] },
    Basic { name: "swept", policy: "", ends: "\"ok\"", before: DEAD, node: "sweeper", ops: &["sweep", "requeue"] },
    Basic {
        name: "spent",
        policy: "max_interruptions = 0\n",
        ends: "\"ok\"",
        before: DEAD,
        node: "sweeper",
        ops: &["escalate"],
    },
    Basic { name: "unsure", policy: "", ends: "\"ok\"", before: SILENT_DEAD, node: "sweeper", ops: &["query"] },
];

/// What a fault at a point may do.
pub const ACTS: [&str; 12] = [
    "do = \"lose\"",
    "do = \"crash\"",
    "do = \"crash\"\nfor = \"20s\"",
    "do = \"pause\"\nfor = \"3s\"",
    "do = \"pause\"\nfor = \"7s\"",
    "do = \"pause\"\nfor = \"60s\"",
    "do = \"cut\"\npeer = \"database\"\nfor = \"45s\"",
    "do = \"cut\"\npeer = \"database\"\nway = \"to\"\nfor = \"45s\"",
    "do = \"cut\"\npeer = \"database\"\nway = \"from\"\nfor = \"45s\"",
    "do = \"cut\"\npeer = \"third_party\"\nfor = \"45s\"",
    "do = \"cut\"\npeer = \"third_party\"\nway = \"to\"\nfor = \"45s\"",
    "do = \"cut\"\npeer = \"third_party\"\nway = \"from\"\nfor = \"45s\"",
];

/// Each half of an exchange.
pub const HALVES: [&str; 2] = ["request", "reply"];

/// A fault at a point.
pub fn fault(node: &str, op: &str, half: &str, act: &str) -> String {
    format!("[[faults]]\nat = \"{op}.{half}\"\non = \"{node}\"\n{act}\n")
}

/// The file of a story.
pub fn text(basic: &Basic, faults: &str) -> String {
    let Basic { policy, ends, before, .. } = basic;
    format!(
        "version = 1\ntitle = \"made\"\nquestion = \"?\"\n[policy]\nlease = \"30s\"\nheartbeat = \"10s\"\n{policy}\
         [[tasks]]\nname = \"t1\"\nwork = \"20s\"\nends = [{ends}]\n\
         [[tasks.effects]]\nkey = \"k\"\nafter = \"10s\"\ninstruments = [\"status_query\", \"execution_token\"]\n\
         [[executors]]\nname = \"w1\"\n[[executors]]\nname = \"w2\"\nstart = \"8s\"\n\
         {before}{faults}[expect]\nverdicts = [\"auto-recovered\"]\n"
    )
}
