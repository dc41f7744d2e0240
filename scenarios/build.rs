//! The story files are embedded by a macro that can not tell cargo about new ones; this does.

fn main() {
    println!("cargo::rerun-if-changed=stories");
    println!("cargo::rerun-if-changed=ablations");
    println!("cargo::rerun-if-changed=recorded");
    println!("cargo::rerun-if-changed=designs");
}
