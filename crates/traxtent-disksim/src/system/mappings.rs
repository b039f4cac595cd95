//! The devices of traces: which disk serves each, and how its addresses and sizes are converted.

use std::collections::BTreeSet;

use super::super::params::{Block, Node, ParamError, Value, in_key};
use super::{DeviceMap, DeviceNames, Loader};

/// The unit of sizes and of `locScale`: the bytes of a sector in DiskSim.
const SECTOR_BYTES: i64 = 512;

impl Loader<'_> {
    /// Returns the mappings of a trace's devices to those that are loaded. As in DiskSim, the first
    /// mapping of a device applies.
    pub(super) fn device_maps(
        &mut self,
        names: &DeviceNames<'_>,
    ) -> Result<Vec<DeviceMap>, ParamError> {
        let (mut maps, mut mapped) = (Vec::new(), BTreeSet::new());
        for block in self
            .document
            .blocks()
            .filter(|block| block.kind == "disksim_iosim")
        {
            let Some(list) = block.get_list("I/O Mappings")? else {
                continue;
            };
            for node in list {
                let map = in_key("I/O Mappings", node.block())?;
                map.check_kind("disksim_iomap")?;
                let trace_device = number(map.require("tracedev")?)?;
                let disks = names.numbers(map.require("simdev")?)?;
                let address_bytes = at_least(map, "locScale", 1, SECTOR_BYTES)?;
                if SECTOR_BYTES % address_bytes != 0 && address_bytes % SECTOR_BYTES != 0 {
                    return Err(map.require("locScale")?.error(format!(
                        "locScale: {address_bytes} is neither a divisor nor a multiple of \
                         {SECTOR_BYTES}"
                    )));
                }
                let sectors_per_size_unit = at_least(map, "sizeScale", 1, 1)? as f64;
                let offset = at_least(map, "offset", 0, 0)?;
                if !mapped.insert(trace_device) {
                    self.warnings.push(format!(
                        "{}:{}: device {trace_device} of traces is mapped already; this mapping is \
                         ignored",
                        node.file, node.line
                    ));
                    continue;
                }
                maps.extend(disks.first().map(|&disk| DeviceMap {
                    trace_device,
                    disk,
                    sectors_per_unit: address_bytes as f64 / SECTOR_BYTES as f64,
                    sectors_per_size_unit,
                    offset,
                }));
            }
        }
        Ok(maps)
    }
}

/// Returns a whole number from `min` up, or `default` if the key is missing.
fn at_least(block: &Block, key: &str, min: i64, default: i64) -> Result<i64, ParamError> {
    match block.get_int(key)? {
        Some(value) if value < min => {
            let node = block.require(key)?;
            Err(node.error(format!("{key}: {value} is less than {min}")))
        }
        value => Ok(value.unwrap_or(default)),
    }
}

/// Parses a device number, which may be hexadecimal.
fn number(node: &Node) -> Result<u32, ParamError> {
    let value = match &node.value {
        Value::Str(word) => word
            .strip_prefix("0x")
            .and_then(|digits| i64::from_str_radix(digits, 16).ok()),
        _ => node.int().ok(),
    };
    value
        .and_then(|n| u32::try_from(n).ok())
        .ok_or_else(|| node.error(format!("{} is not a device number", node.value.show())))
}
