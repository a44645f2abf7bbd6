//! Numbers that may be somebody else's by now: whoever has agreed long ago is not reached before the database of reassigned numbers has
//! said no. Live, by text: with a test key nobody outside is asked.
use super::{
    asks_whose_numbers, attempts, barred, campaign, consent, contacts, eligibility, fates, introduce, law, mid_morning,
    proof, reached, text, texted, untouched,
};
use crate::{
    on_both,
    scenarios::messages::with_provider,
    world::{Tenant, World, minutes, reassigned_server::ReassignedServer, seconds, twilio::Twilio},
};
use serde_json::json;

/// Three who have agreed long ago, and one who has yesterday.
const KEPT: &str = "+12025550121";
const GIVEN_AWAY: &str = "+12025550122";
const UNKNOWN: &str = "+12025550123";
const YESTERDAYS: &str = "+12025550124";
const LONG_AGO: &str = "2026-12-24T18:00:00Z";

on_both! {
    /// Source: 47 CFR 64.1200(m).
    async fn who_has_agreed_long_ago_is_asked_about_first(world: &mut World) {
        let (tenant, provider, server) = (world.tenant().await, Twilio::start().await, ReassignedServer::start());
        let api = with_provider(world, &tenant, &provider).await;
        asks_whose_numbers(world, &server).await;
        introduce(world, &tenant).await;
        let tenant = Tenant { api, ..tenant };
        mid_morning(world).await;
        for number in [KEPT, GIVEN_AWAY, UNKNOWN] {
            consent(&tenant.api, number, json!({ "given_at": LONG_AGO })).await;
        }
        consent(&tenant.api, YESTERDAYS, json!({})).await;
        server.knows(GIVEN_AWAY, "yes");
        server.knows(UNKNOWN, "no_data");
        // It is out of order at first, for a minute and a half at most.
        server.fail_next(2);
        let path = text(&tenant, &[KEPT, GIVEN_AWAY, UNKNOWN, YESTERDAYS]).await;
        world.advance(seconds(5)).await;
        assert_eq!(fates(&tenant, &path).await, [untouched(), untouched(), untouched(), texted()]);
        let row = campaign(&tenant, &path).await;
        assert_eq!((&row["status"], &row["blocked_by"]), (&json!("running"), &json!(["register"])), "{row}");
        let waits = contacts(&tenant, &path).await[0].clone();
        assert_eq!(law(&eligibility(&tenant, &path, &waits).await, "us.reassigned"), Some("wait"));
        assert_eq!((reached(&provider), server.take_asked()), (vec![YESTERDAYS.to_owned()], vec![]));

        // Then it answers, and all of them are settled by themselves.
        world.advance(minutes(5)).await;
        assert_eq!(fates(&tenant, &path).await, [texted(), barred(), barred(), texted()]);
        assert_eq!(campaign(&tenant, &path).await["blocked_by"], json!([]));
        assert_eq!(reached(&provider), [KEPT, YESTERDAYS]);
        let mut asked = server.take_asked();
        asked.dedup();
        let about = |number: &str| (number.to_owned(), "2026-12-24".to_owned());
        assert_eq!(asked, [KEPT, GIVEN_AWAY, UNKNOWN].map(about), "nobody else");
        let on_record = attempts(&tenant, &path).await;
        let of_kept = on_record.iter().find(|attempt| attempt["phone_number"] == KEPT).unwrap();
        let proof = proof(&tenant.api, of_kept).await;
        assert_eq!(proof["records"][0]["record"]["facts"]["reassigned"]["answer"], "no", "{proof:#}");

        // What it has said outlives the process, and a new consent needs no answer.
        world.restart().await;
        let again = text(&tenant, &[GIVEN_AWAY]).await;
        world.advance(minutes(1)).await;
        assert_eq!(fates(&tenant, &again).await, [barred()]);
        consent(&tenant.api, GIVEN_AWAY, json!({ "given_at": world.clock.now() })).await;
        let anew = text(&tenant, &[GIVEN_AWAY]).await;
        world.advance(minutes(1)).await;
        assert_eq!(fates(&tenant, &anew).await, [texted()]);
        assert_eq!(server.take_asked(), []);
    }
}
