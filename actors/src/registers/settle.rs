//! A register gets a file that is stored already: the last step of an upload, in one transaction.
use entities::{
    Error, Result, boxed,
    connection::Connection,
    ids::TenantId,
    register::{self, Model, OPERATOR},
    values::Moment,
};
use rules::registers::version::{Change, File, Upload};

/// Registers of a workspace, in both environments, and their numbers together.
const MAX_OF_WORKSPACE: usize = 20;
pub const MAX_NUMBERS_OF_WORKSPACE: i64 = 20_000_000;
/// Of the operator.
const MAX_OF_OPERATOR: usize = 100;

/// May somebody upload a file for a register of that name at all? Asked before it is read.
#[boxed]
pub async fn check_name(db: &Connection, upload: &Upload) -> Result<()> {
    let all = register::of_owner(db, upload.owner.0).await?;
    let is_known = all.iter().any(|row| is_of(row, upload));
    let most = if is_operators(upload.owner.0) {
        MAX_OF_OPERATOR
    } else {
        MAX_OF_WORKSPACE
    };
    if !is_known && all.len() >= most {
        return Err(Error::PlanLimit(format!(
            "there are {most} registers already; delete some"
        )));
    }
    Ok(())
}

/// So many numbers a workspace's file for that register may hold, beside those of its others.
#[boxed]
pub async fn room(db: &Connection, upload: &Upload) -> Result<usize> {
    let all = register::of_owner(db, upload.owner.0).await?;
    let left = MAX_NUMBERS_OF_WORKSPACE - numbers_of_others(&all, upload);
    match usize::try_from(left) {
        Ok(left) if left > 0 => Ok(left),
        Ok(_) | Err(_) => Err(Error::PlanLimit(format!(
            "the registers of a workspace hold at most {MAX_NUMBERS_OF_WORKSPACE} numbers together, and there are as many; delete some"
        ))),
    }
}

fn numbers_of_others(all: &[Model], upload: &Upload) -> i64 {
    let others = all.iter().filter(|row| !is_of(row, upload));
    others.map(|row| row.numbers).sum()
}

/// Gives the register this file. `is_stored`: all of it is; without that only a file that is there already counts.
#[boxed]
pub async fn settle(
    db: &Connection,
    upload: &Upload,
    file: &File,
    is_stored: bool,
    now: Moment,
) -> Result<(Model, Change)> {
    check_name(db, upload).await?;
    let current = register::of_name(db, upload.owner, &upload.name).await?;
    let (row, change) = upload.next(current.as_ref(), file, now)?;
    match change {
        Change::Nothing => {}
        Change::Refreshed => register::refresh(db, &row).await?,
        Change::Replaced if !is_stored => return Err(Error::Stale),
        Change::Replaced => {
            check_numbers(db, upload, file).await?;
            register::put(db, &row).await?;
        }
    }
    Ok((row, change))
}

async fn check_numbers(db: &Connection, upload: &Upload, file: &File) -> Result<()> {
    if is_operators(upload.owner.0) {
        return Ok(());
    }
    let all = register::of_owner(db, upload.owner.0).await?;
    let numbers = numbers_of_others(&all, upload) + file.numbers;
    if numbers > MAX_NUMBERS_OF_WORKSPACE {
        return Err(Error::PlanLimit(format!(
            "the registers of a workspace hold at most {MAX_NUMBERS_OF_WORKSPACE} numbers together, and would hold {numbers}"
        )));
    }
    Ok(())
}

fn is_of(row: &Model, upload: &Upload) -> bool {
    row.name == upload.name && (row.tenant_id, row.env) == upload.owner
}

pub fn is_operators(owner: TenantId) -> bool {
    owner == OPERATOR.0
}
