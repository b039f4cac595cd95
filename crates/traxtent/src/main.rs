//! The `traxtent` command.

fn main() -> std::process::ExitCode {
    traxtent::main()
}
