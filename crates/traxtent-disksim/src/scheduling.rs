//! DiskSim's scheduling policies, and the modelled policies that replace them.
//!
//! The names and numbers are those of `disksim_ioqueue.h` in DiskSim 4.0. A policy that is not
//! modelled is replaced by the nearest one that is: FCFS, SSTF, LOOK, C-LOOK, SPTF or aged SPTF.

use super::params::{Block, Node, ParamError, not_modelled};
use super::required::{QUEUE_REQUIRED, warn_of_missing};
use traxtent_model::profile::Scheduler;

/// The key of the policy in a `disksim_ioqueue` block.
const POLICY: &str = "Scheduling policy";

/// The key of the weight of a request's age.
const WEIGHT: &str = "Timeout time/weight";

/// The divisor that converts the weight of DiskSim's aged SPTF, which is in thousandths, to that of
/// the model (`disksim_ioqueue.c`, `ioqueue_get_request_from_opt_sptf_queue`).
const AGED_SPTF_DIVISOR: f64 = 1000.0;

/// A policy of DiskSim.
struct Policy {
    name: &'static str,
    model: Model,
    /// The difference between the policy and its model; `None` if there is none.
    difference: Option<&'static str>,
}

/// The modelled policy for one of DiskSim's.
enum Model {
    Plain(Scheduler),
    /// Aged SPTF, with the weight in the parameters.
    Aged,
}

use Model::{Aged, Plain};
use Scheduler::{CLook, Fcfs, Look, Sptf, Sstf};

const BY_LBN: &str = "it orders by LBN, not by cylinder";
const NO_HITS: &str = "it disregards hits in the buffer";
const NO_TRANSFER: &str = "it disregards the time of the transfer";
const NO_AGE: &str = "it does not scale times by age";
const NO_TURN: &str = "it turns only after the last request in a direction";
const ALL_AGE: &str = "all requests age, not only urgent ones";
const NO_WEIGHT: &str = "it weighs seek and rotation equally";

/// The policies by number, from 1.
const POLICIES: [Policy; 28] = [
    exact("FCFS", Plain(Fcfs)),
    exact("ELEVATOR_LBN", Plain(Look)),
    exact("CYCLE_LBN", Plain(CLook)),
    exact("SSTF_LBN", Plain(Sstf)),
    nearest("ELEVATOR_CYL", Plain(Look), BY_LBN),
    nearest("CYCLE_CYL", Plain(CLook), BY_LBN),
    nearest("SSTF_CYL", Plain(Sstf), BY_LBN),
    exact("SPTF_OPT", Plain(Sptf)),
    nearest("SPCTF_OPT", Plain(Sptf), NO_HITS),
    nearest("SATF_OPT", Plain(Sptf), NO_TRANSFER),
    nearest("WPTF_OPT", Plain(Sptf), NO_AGE),
    nearest("WPCTF_OPT", Plain(Sptf), NO_AGE),
    nearest("WATF_OPT", Plain(Sptf), NO_AGE),
    exact("ASPTF_OPT", Aged),
    nearest("ASPCTF_OPT", Aged, NO_HITS),
    nearest("ASATF_OPT", Aged, NO_TRANSFER),
    nearest("VSCAN_LBN", Plain(Look), NO_TURN),
    nearest("VSCAN_CYL", Plain(Look), NO_TURN),
    nearest("PRI_VSCAN_LBN", Plain(Look), NO_TURN),
    nearest("PRI_ASPTF_OPT", Aged, ALL_AGE),
    nearest("PRI_ASPCTF_OPT", Aged, ALL_AGE),
    nearest("SDF_APPROX", Plain(Sstf), BY_LBN),
    nearest("SDF_EXACT", Plain(Sstf), BY_LBN),
    nearest("SPTF_ROT_OPT", Plain(Sptf), NO_WEIGHT),
    nearest("SPTF_ROT_WEIGHT", Plain(Sptf), NO_WEIGHT),
    nearest("SPTF_SEEK_WEIGHT", Plain(Sptf), NO_WEIGHT),
    nearest("TSPS", Plain(Sptf), "it chooses one request at a time"),
    nearest("BATCH_FCFS", Plain(Fcfs), "it disregards batches"),
];

const fn exact(name: &'static str, model: Model) -> Policy {
    Policy {
        name,
        model,
        difference: None,
    }
}

const fn nearest(name: &'static str, model: Model, difference: &'static str) -> Policy {
    Policy {
        name,
        model,
        difference: Some(difference),
    }
}

/// Names of policies in textbooks, with the number of DiskSim's policy.
const TEXTBOOK_NAMES: [(&str, usize); 6] = [
    ("fifo", 1),
    ("scan", 2),
    ("look", 2),
    ("cscan", 3),
    ("clook", 3),
    ("agedsptf", 14),
];

/// Returns a hint at the scheduler that models a policy of DiskSim, such as `look (DiskSim's
/// ELEVATOR_LBN, policy 2)`. The policy is given by its number or its name, of which the ending
/// such as `_LBN` can be missing, or by the name that textbooks use. There is none for the queue of
/// a host if the policy needs to know where the heads are.
pub fn scheduler_hint(policy: &str, is_host: bool) -> Option<String> {
    let number = number_of(policy)?;
    let Policy {
        name,
        model,
        difference,
    } = POLICIES.get(number.checked_sub(1)?)?;
    let scheduler = match model {
        Plain(scheduler) if is_host && scheduler.is_positional() => return None,
        Aged if is_host => return None,
        Plain(scheduler) => scheduler.to_string(),
        Aged => "{aged-sptf={weight=W}}, with W a thousandth of DiskSim's weight".to_owned(),
    };
    let relation = if difference.is_some() {
        "nearest to "
    } else {
        ""
    };
    Some(format!(
        "{scheduler} ({relation}DiskSim's {name}, policy {number})"
    ))
}

/// Returns the number of a policy that is given by its number or by one of its names.
fn number_of(policy: &str) -> Option<usize> {
    let letters = |text: &str| {
        let letters = text.chars().filter(char::is_ascii_alphanumeric);
        letters.collect::<String>().to_ascii_lowercase()
    };
    let given = letters(policy);
    let textbook = TEXTBOOK_NAMES.iter().find(|(name, _)| *name == given);
    let begins = |policy: &Policy| {
        let (stem, _) = policy.name.rsplit_once('_').unwrap_or((policy.name, ""));
        given == letters(policy.name) || given == letters(stem)
    };
    match given.parse() {
        Ok(number) => Some(number),
        Err(_) => match textbook {
            Some((_, number)) => Some(*number),
            None => Some(1 + POLICIES.iter().position(begins)?),
        },
    }
}

/// The owner of a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueOwner {
    Disk,
    /// A host does not know where the heads are, so policies by position become first come, first
    /// served.
    Host,
}

/// Returns the policy of a `disksim_ioqueue` block. Adds a warning if required parameters are
/// missing, if the policy is replaced, and for each parameter that is set but not modelled.
pub(super) fn scheduler(
    queue: &Block,
    owner: QueueOwner,
    warnings: &mut Vec<String>,
) -> Result<Scheduler, ParamError> {
    queue.check_kind("disksim_ioqueue")?;
    warn_of_missing(queue, QUEUE_REQUIRED, warnings);
    let (scheduler, replaced) = modelled(queue, owner)?;
    if let Some(replaced) = replaced {
        let node = queue.require(POLICY)?;
        warnings.push(format!("{}:{}: {replaced}", node.file, node.line));
    }
    for key in [
        "Cylinder mapping strategy",
        "Maximum concat size",
        "Sequential stream diff maximum",
        WEIGHT,
        "Timeout scheduling",
        "Priority scheduling",
    ] {
        queue.get(key);
    }
    not_modelled(
        queue,
        warnings,
        &[
            (
                "Sequential stream scheme",
                "sequential requests are not merged in the queue",
            ),
            (
                "Overlapping request scheme",
                "overlapping requests are not merged in the queue",
            ),
            (
                "Scheduling priority scheme",
                "urgent requests are not served first",
            ),
            (
                "Scheduling timeout scheme",
                "requests are not given priority after a timeout",
            ),
        ],
    )?;
    let delays = ["Write initiation delay", "Read initiation delay"];
    if matches!(scheduler, Scheduler::Sptf | Scheduler::AgedSptf { .. }) {
        let keys = delays.map(|key| (key, "it is not added to positioning times"));
        not_modelled(queue, warnings, &keys)?;
    } else {
        for key in delays {
            queue.get(key);
        }
    }
    Ok(scheduler)
}

/// Returns the origin of a scheduler that replaces the one in the file, or `None` if the file's is
/// used.
pub(super) fn origin_of_replacement(queue: &Block, owner: QueueOwner) -> Option<String> {
    let (_, replaced) = modelled(queue, owner).ok()?;
    let (replaced, node) = (replaced?, queue.get(POLICY)?);
    Some(format!(
        "assumed: DiskSim, {}:{}, {replaced}",
        node.file, node.line
    ))
}

/// Returns the policy to use. If it differs from the one in the file, also returns an explanation
/// that names both.
fn modelled(queue: &Block, owner: QueueOwner) -> Result<(Scheduler, Option<String>), ParamError> {
    if let Some(Ok(name)) = queue.get(POLICY).map(Node::str) {
        let known = number_of(name).and_then(|number| {
            let policy = POLICIES.get(number.checked_sub(1)?)?;
            Some(format!("{} is {number}", policy.name))
        });
        let hint = known.unwrap_or_else(|| {
            let [first, .., last] = &POLICIES;
            let count = POLICIES.len();
            format!(
                "the numbers are 1 ({}) to {count} ({})",
                first.name, last.name
            )
        });
        let problem = format!("{POLICY}: \"{name}\" is not the number of a policy; {hint}");
        return Err(queue.require(POLICY)?.error(problem));
    }
    let number = queue
        .get_bounded(POLICY, 1, POLICIES.len() as u32)?
        .unwrap_or(1);
    let Policy {
        name,
        model,
        difference,
    } = &POLICIES[number as usize - 1];
    let scheduler = match model {
        Plain(scheduler) => *scheduler,
        Aged => Scheduler::AgedSptf {
            weight: queue.get_f64(WEIGHT)?.unwrap_or(0.0) / AGED_SPTF_DIVISOR,
        },
    };
    if owner == QueueOwner::Host && scheduler.is_positional() {
        let why = format!(
            "scheduling policy {number} ({name}) is not modelled in the host's queue, since a host \
             does not know where the heads are; {Fcfs} is used instead"
        );
        return Ok((Fcfs, Some(why)));
    }
    let replaced = difference.map(|difference| {
        format!(
            "scheduling policy {number} ({name}) is not modelled; {scheduler}, the nearest policy, \
             is used instead: {difference}"
        )
    });
    Ok((scheduler, replaced))
}
