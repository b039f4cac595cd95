//! Reading a drive's defect lists, in parts if they are long.

use super::{Failure, run};
use crate::TargetError;
use traxtent_model::geometry::Place;
use traxtent_scsi::DefectList;
use traxtent_scsi::{Address, AddressFormat};
use traxtent_scsi::{Command, DefectWidth, ReadDefectData};
use traxtent_scsi::{DataTransfer, Transport};

/// The number of addresses requested at a time.
const ADDRESSES_PER_PART: usize = 8_190;
/// The largest plausible number of bad sectors in a list. Drives have a few thousand.
const DEFECTS_MAX: usize = 1 << 20;

/// The name of the requested operation in errors.
const OPERATION: &str = "defect lists";

/// Reads the primary list, made during manufacture, or the grown list.
pub(super) fn read_list<T: Transport>(
    transport: &mut T,
    primary: bool,
) -> Result<Vec<Place>, TargetError> {
    match read_parts(transport, primary) {
        Err(Failure::Sense(_)) => {
            let list = read_part(transport, primary, DefectWidth::Ten, 0)
                .map_err(|failure| failure.into_target_error(OPERATION))?;
            if list.addresses.len() * list.format.size() < list.length as usize {
                let why = format!("{OPERATION}: longer than READ DEFECT DATA(10) can return");
                return Err(TargetError::Refused(why));
            }
            places(&list)
        }
        outcome => outcome.map_err(|failure| failure.into_target_error(OPERATION)),
    }
}

/// Reads the whole list by READ DEFECT DATA(12).
fn read_parts<T: Transport>(transport: &mut T, primary: bool) -> Result<Vec<Place>, Failure> {
    let mut all = Vec::new();
    let mut length = None;
    loop {
        let list = read_part(transport, primary, DefectWidth::Twelve, all.len())?;
        let part = places(&list).map_err(Failure::Target)?;
        let done = part.is_empty() || part.len() * list.format.size() >= list.length as usize;
        // Drives before SBC-3 always begin with the first address, and report the same length.
        let restarted = !all.is_empty() && length == Some(list.length);
        if restarted {
            return refused(format!(
                "the drive does not return the list of {} bytes in parts",
                list.length
            ));
        }
        if all.len() + part.len() > DEFECTS_MAX {
            return refused(format!("more than {DEFECTS_MAX} bad sectors"));
        }
        length.get_or_insert(list.length);
        all.extend(part);
        if done {
            return Ok(all);
        }
    }
}

fn refused<V>(why: String) -> Result<V, Failure> {
    Err(Failure::Target(TargetError::Refused(format!(
        "{OPERATION}: {why}"
    ))))
}

fn read_part<T: Transport>(
    transport: &mut T,
    primary: bool,
    width: DefectWidth,
    from: usize,
) -> Result<DefectList, Failure> {
    let mut room = vec![0; 8 + ADDRESSES_PER_PART * AddressFormat::PhysicalSector.size()];
    let command = Command::ReadDefectData(ReadDefectData {
        width,
        primary,
        grown: !primary,
        format: AddressFormat::PhysicalSector,
        index: u32::try_from(from).unwrap_or(u32::MAX),
        allocation: room.len() as u32,
    });
    let reply = run(transport, &command, DataTransfer::In(&mut room))?;
    // A drive without such a list may send no data and report that there is none.
    Ok(if reply.received == 0 {
        DefectList::new(primary, !primary, AddressFormat::PhysicalSector, Vec::new())
    } else {
        DefectList::decode(width, &room[..reply.received])?
    })
}

fn places(list: &DefectList) -> Result<Vec<Place>, TargetError> {
    let place = |address: &Address| match address {
        Address::Sector(place) => Ok(*place),
        Address::Block(_) => Err(TargetError::Unsupported("defect lists by physical sector")),
    };
    list.addresses.iter().map(place).collect()
}
