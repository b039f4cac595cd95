//! What goes wrong on a drive that answers, and how far it does as it is told.

use crate::request::Op;
use crate::units::Lbn;

/// What goes wrong on a drive.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// LBNs that cannot be read, ascending.
    pub unreadable: Vec<Lbn>,
    /// The kinds of request that the drive does not know.
    pub unsupported: Vec<Op>,
    /// The drive is gone after this many requests and translations.
    pub gone_after: Option<u64>,
    /// What the drive does with VERIFY.
    pub verify: Obedience,
    /// What the drive does with force unit access.
    pub fua: Obedience,
    /// What the drive does with the order to switch its read cache and read-ahead off.
    pub cache_orders: Obedience,
}

/// How a drive takes an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Obedience {
    /// It obeys.
    #[default]
    Obeys,
    /// It refuses.
    Refuses,
    /// It takes the order and ignores it, as paper Q's drives do with their caches (section 2.3)
    /// and some bridges with VERIFY.
    Ignores,
}
