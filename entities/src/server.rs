//! What a database server says about itself, for whoever looks after it.
use crate::{boxed, connection::Connection, error::Result, values::Moment};
use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Statement};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Such as 15.
    pub major: i32,
    /// Both off: an acknowledged write may be lost when the machine loses power.
    pub fsync: bool,
    pub synchronous_commit: bool,
    pub now: Moment,
}

/// `None`: it is a file.
#[boxed]
pub async fn ask(db: &Connection) -> Result<Option<Server>> {
    if db.get_database_backend() == DbBackend::Sqlite {
        return Ok(None);
    }
    let text = "SELECT current_setting('server_version_num')::int / 10000, current_setting('fsync') = 'on', \
                current_setting('synchronous_commit') <> 'off', (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint";
    let asked = Statement::from_string(db.get_database_backend(), text);
    let read = |row: QueryResult| {
        Ok(Server {
            major: row.try_get_by_index(0)?,
            fsync: row.try_get_by_index(1)?,
            synchronous_commit: row.try_get_by_index(2)?,
            now: Moment::from_millis(row.try_get_by_index(3)?),
        })
    };
    db.query_one_raw(asked).await?.map(read).transpose()
}
