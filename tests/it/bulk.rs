//! Many rows in one statement, on either database.
use crate::{on_both, world::World};
use actors::leases::Of;
use entities::{
    changes::Changes,
    delivery_attempt::{self, Model as Attempt, ResponseHeaders},
    ids::DeliveryId,
    values::Moment,
};
use rules::commit::Commit;
use uuid::Uuid;

/// The nth of many: which of its values are null is told by the bits of its number.
fn attempt(n: u32) -> Attempt {
    let given = |bit: u32| (n >> bit) & 1 == 1;
    let number = i32::try_from(n).unwrap();
    Attempt {
        delivery_id: DeliveryId(Uuid::from_u128(u128::from(n))),
        n: 1,
        started_at: Moment::from_millis(i64::from(n)),
        signed_at: 0,
        duration_ms: number,
        dns_ms: given(0).then_some(0),
        connect_ms: given(1).then_some(number),
        tls_ms: given(2).then_some(-number),
        first_byte_ms: given(3).then_some(i32::MIN),
        remote_address: given(4).then(|| "127.0.0.1:80".into()),
        status: 200,
        error_code: given(5).then(String::new),
        error_message: given(6).then(|| format!("{n}, \"quoted\", {{braces}}, NULL, \\ and ü")),
        response_headers: ResponseHeaders(Vec::new()),
        response_body: given(7).then(|| "NULL".into()),
    }
}

on_both! {
    /// More than one statement takes, with every pattern of nulls.
    async fn rows_are_stored_as_they_are_however_many(world: &mut World) {
        let all: Vec<Attempt> = (0..2_500).map(attempt).collect();
        let changes = Changes { attempts: all.clone(), ..Changes::default() };
        world.deps().writer.commit(Of::Anybody, Commit { changes, events: Vec::new() }).await.unwrap();
        for some in all.chunks(500) {
            let ids: Vec<DeliveryId> = some.iter().map(|attempt| attempt.delivery_id).collect();
            assert_eq!(delivery_attempt::of(&world.deps().db.read, &ids).await.unwrap(), some);
        }
    }
}
