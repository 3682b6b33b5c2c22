//! Without the feature `peers` there is nobody to compare with.

pub fn table() {
    println!("built without the feature `peers`");
}
