//! The `traxtent` command.

fn main() {
    traxtent::command().get_matches();
}
