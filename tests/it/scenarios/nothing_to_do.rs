//! A service with nothing to do: what it does not ask for again and again, and what it finds all the same.
use super::{
    an_event_is_delivered::one_event,
    messages::{PERSON, status, text, with_provider},
};
use crate::{
    on_both,
    world::{Api, Receiver, World, minutes, seconds, twilio::Twilio},
};
use actors::leases::Of;
use rules::commit::Commit;
use sea_orm::ConnectionTrait;
use serde_json::json;

/// A message that waits becomes due, by its row alone.
const DUE: &str = "UPDATE sms_messages SET scheduled_at = created_at, wake_at = created_at WHERE phase = 'scheduled'";

/// How often all rows are looked at within an hour, in which somebody reads now and then.
async fn looks_in_an_hour(world: &World, api: &Api) -> u64 {
    let before = world.deps().quiet.full_looks();
    for _ in 0..6 {
        api.get("/v1/campaigns").await.ok();
        world.advance(minutes(10)).await;
    }
    world.deps().quiet.full_looks() - before
}

on_both! {
    async fn rows_that_cannot_have_changed_are_looked_at_every_five_minutes(world: &mut World) {
        let tenant = world.tenant().await;
        world.advance(minutes(1)).await;
        let looks = looks_in_an_hour(world, &tenant.api).await;
        assert!((11..=13).contains(&looks), "not every half minute: {looks}");
    }

    /// The lane keeps its alarm: the day of retries is not one of questions.
    async fn a_delivery_that_waits_for_its_next_attempt_is_not_asked_for(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        tenant.webhook(&receiver).await;
        receiver.answer_next(std::iter::repeat_n(500, 5));
        one_event(&tenant).await;
        world.advance(minutes(1)).await;
        assert_eq!(receiver.requests().len(), 3);
        let looks = looks_in_an_hour(world, &tenant.api).await;
        assert_eq!(receiver.requests().len(), 6, "each attempt comes in time");
        // The commit of an attempt asks for a look more.
        assert!((11..=20).contains(&looks), "not every half minute: {looks}");
    }

    async fn while_something_is_at_work_all_rows_are_looked_at_every_half_minute(world: &mut World) {
        let tenant = world.tenant().await;
        let now = world.clock.now();
        let paused = world.deps().writer.run(Of::Anybody, move |db| Box::pin(async move {
            entities::dispatch_pause::begin(db, now).await?;
            Ok(((), Commit::default()))
        }));
        paused.await.unwrap();
        // How long a pause lasts nobody knows.
        let looks = looks_in_an_hour(world, &tenant.api).await;
        assert!((119..=122).contains(&looks), "{looks}");
    }

    /// As after a lost hint: nobody was told of the commit.
    async fn what_a_commit_has_left_is_found_within_half_a_minute(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        let id = text(&api, PERSON, json!({ "scheduled_at": "2027-03-04T13:00:00Z" })).await;
        world.advance(minutes(11)).await;
        assert_eq!(status(&api, &id).await, "scheduled");
        let committed = world.deps().writer.run(Of::Anybody, |db| Box::pin(async move {
            db.execute_unprepared(DUE).await?;
            Ok(((), Commit::default()))
        }));
        committed.await.unwrap();
        world.advance(seconds(31)).await;
        assert_eq!((status(&api, &id).await.as_str(), provider.asked().len()), ("sent", 1));
    }

    /// Whatever it was that changed a row without our knowing.
    async fn what_no_count_tells_is_found_within_five_minutes(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        let id = text(&api, PERSON, json!({ "scheduled_at": "2027-03-04T13:00:00Z" })).await;
        world.advance(minutes(11)).await;
        world.deps().db.write.execute_unprepared(DUE).await.unwrap();
        world.advance(minutes(5) + seconds(31)).await;
        assert_eq!((status(&api, &id).await.as_str(), provider.asked().len()), ("sent", 1));
    }

    /// Within the five minutes for which nobody looks: its row has told so before.
    async fn what_comes_due_at_rest_is_done_in_time(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        let id = text(&api, PERSON, json!({ "scheduled_at": "2027-03-02T13:17:10Z" })).await;
        world.advance(minutes(17)).await;
        assert_eq!(status(&api, &id).await, "scheduled");
        world.advance(seconds(41)).await;
        assert_eq!((status(&api, &id).await.as_str(), provider.asked().len()), ("sent", 1));
    }
}
