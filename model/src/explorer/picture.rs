//! A path of the Explorer as a picture: one lane a node, one row a step, time downwards.

use std::fmt::Write;

/// Who may have a lane beside the executors, from left to right.
const OTHERS: [&str; 8] =
    ["sweeper", "second sweeper", "database", "network", "third party", "person", "second person", "world"];
const LANE: usize = 110;
const ROW: usize = 20;
/// Of a character, about: the page's font is the reader's.
const CHARACTER: usize = 7;

/// Draws steps of the form `who: what`. All executors have a lane, others once they have done something.
pub fn lanes(title: &str, executors: usize, steps: &[String]) -> String {
    let told: Vec<(&str, &str)> = steps.iter().map(|step| step.split_once(": ").unwrap_or(("world", step))).collect();
    let mut nodes: Vec<String> = (1..=executors).map(|number| format!("w{number}")).collect();
    nodes.extend(OTHERS.iter().filter(|other| told.iter().any(|(who, _)| who == *other)).map(|&name| name.to_owned()));
    let x = |lane: usize| LANE / 2 + lane * LANE;
    // Above the steps: the title, then the names.
    let y = |row: usize| ROW / 2 + row * ROW;
    let bottom = y(told.len() + 2);

    let mut body = String::new();
    text(&mut body, 4, y(0) + 4, "", title);
    let mut right = x(nodes.len()).max(4 + title.chars().count() * CHARACTER);
    for (lane, node) in nodes.iter().enumerate() {
        text(&mut body, x(lane), y(1) + 4, "text-anchor=\"middle\" font-weight=\"bold\"", node);
        let (x, top) = (x(lane), y(2) - ROW / 2);
        line(&mut body, &format!("<line x1=\"{x}\" x2=\"{x}\" y1=\"{top}\" y2=\"{bottom}\" stroke-opacity=\"0.3\"/>"));
    }
    for (row, (who, what)) in told.iter().enumerate() {
        let lane = nodes.iter().position(|node| node == who).unwrap_or(nodes.len());
        let (x, y) = (x(lane), y(row + 2));
        line(&mut body, &format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"4\" fill=\"currentColor\"/>"));
        text(&mut body, x + 8, y + 4, "", what);
        right = right.max(x + 8 + what.chars().count() * CHARACTER);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{right}\" height=\"{}\" stroke=\"currentColor\" \
         font-family=\"monospace\" font-size=\"11\">\n{body}</svg>",
        bottom + 4
    )
}

fn line(body: &mut String, element: &str) {
    body.push_str(element);
    body.push('\n');
}

fn text(body: &mut String, x: usize, y: usize, attributes: &str, content: &str) {
    let content = content.replace('&', "&amp;").replace('<', "&lt;");
    // Writing to a String does not fail.
    let _ =
        writeln!(body, "<text x=\"{x}\" y=\"{y}\" stroke=\"none\" fill=\"currentColor\" {attributes}>{content}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The x of the element that comes before, or is, the one with this text.
    fn x_of(picture: &str, content: &str) -> usize {
        let line = picture.lines().find(|line| line.contains(&format!(">{content}<"))).expect("it is drawn");
        let (_, rest) = line.split_once("x=\"").expect("it has a place");
        rest.split('"').next().and_then(|number| number.parse().ok()).expect("a number")
    }

    #[test]
    fn a_step_stands_in_the_lane_of_its_node_and_only_who_acts_has_one() {
        let steps = ["w2: claim t1 epoch 0", "sweeper: reads t1"].map(str::to_owned);
        let picture = lanes("1 task", 2, &steps);
        for (node, step) in [("w2", "claim t1 epoch 0"), ("sweeper", "reads t1")] {
            assert_eq!(x_of(&picture, step), x_of(&picture, node) + 8, "{picture}");
        }
        assert!(x_of(&picture, "w1") < x_of(&picture, "w2"));
        assert!(!picture.contains("person"), "{picture}");
        assert_eq!(picture.matches("<circle").count(), steps.len());
    }

    #[test]
    fn what_is_drawn_is_text_and_never_markup() {
        let picture = lanes("<b>", 1, &["w1: a < b & c".to_owned()]);
        assert!(picture.contains("a &lt; b &amp; c") && picture.contains("&lt;b>"), "{picture}");
    }
}
