//! What a tenant's calls go over, as its rows and those who speak with the peers say.
use crate::deps::Deps;
use entities::sip_trunk::Model as Row;
use rules::dispatch::trunk::{Trunk, Trunks};

/// From the rows; what is known of the pace of each goes on. `most`: calls per second that one tenant may start.
pub fn of_rows(rows: Vec<Row>, old: Option<Trunks>, most: f64) -> Trunks {
    let mut trunks = old.unwrap_or_else(|| Trunks::new(most));
    let mut before = std::mem::take(&mut trunks.live);
    let live = rows.into_iter().map(|row| {
        let definition = row.definition;
        let rate = definition.max_calls_per_second.get().min(most);
        let mut trunk = before.remove(&row.id).unwrap_or_else(|| Trunk::new(rate));
        trunk.set(rate, definition.max_concurrency.map(|most| most.get()), row.version);
        trunk.is_paused = definition.paused;
        (row.id, trunk)
    });
    trunks.live = live.collect();
    trunks
}

/// What has been noted of them since the last round; and notes how fast they are dialled over, for those who ask.
pub fn look(deps: &Deps, trunks: &mut Trunks) {
    for (id, trunk) in &mut trunks.live {
        let seen = deps.trunks.seen(*id);
        trunk.is_up = seen.takes_calls;
        trunk.paused_until = seen.paused_until;
        trunk.more_legs = seen.more_legs;
        deps.trunks.paced(*id, trunk.pace.rate());
    }
}
