//! Tests of calibration.

mod blind;
mod newcomer;
mod refused;
