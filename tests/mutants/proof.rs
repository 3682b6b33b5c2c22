//! The properties outside of the test harness: `proof exhaustive LENGTH`, or `proof NAME CASES`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "../properties/mod.rs"]
mod properties;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, number] = &*arguments else { panic!("usage: proof exhaustive LENGTH | proof NAME CASES") };
    let number = number.parse().expect("a number");
    match &**name {
        "exhaustive" => println!("{} texts", properties::exhaustive::check(number)),
        name => properties::holds(name, number),
    }
}
