//! Laying data out along tracks, over a [`TrackMap`](crate::trackmap::TrackMap) and nothing else.

pub mod log;
