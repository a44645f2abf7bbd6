//! A talk that is cut off: what was said by then is screened all the same.
use super::*;

/// It is ended, and what was said was the wish to be left alone.
async fn is_screened(world: &World, tenant: &Tenant, page: Page) {
    let path = format!("/v1/sessions/{}/end", page.id);
    tenant.api.post(&path, json!({})).await.ok();
    page.talk.abort();
    let _ = page.talk.await;
    world.settle().await;
    assert_eq!(session(tenant, &page.id).await["status"], "completed");
    assert_eq!(told(tenant, "session.opt_out_detected").await.len(), 1);
}

on_both! {
    /// The talk is ended before it is known whether they go on: then they have said all.
    async fn words_that_are_open_when_a_talk_is_dropped_are_screened(world: &mut World) {
        let _ears = understand(world, &["Please stop calling me."]).await;
        let chat = ChatServer::start_with(|_, _| chat_server::Answer::Hang).await;
        world.change_setting("chat_url", json!(chat.url())).await;
        let tenant = world.tenant().await;
        let settings = json!({
            "first_message": "Hello.", "recording": { "enabled": false }, "brain": { "mode": "chat" },
        });
        let agent = agent(&tenant, settings).await;
        let mut page = Page::join(world, &tenant, &agent).await;
        assert_eq!(page.play_until(1).await, "agent: Hello.");
        page.speak_and_pause().await;
        // It is thought about already.
        while chat.requests().is_empty() {
            page.next_moment().await;
        }
        is_screened(world, &tenant, page).await;
    }

    /// Said while the agent said what must be heard: the talk is ended before it has listened.
    async fn what_was_not_listened_to_when_a_talk_is_dropped_is_screened(world: &mut World) {
        let ears = understand(world, &["Please stop calling me."]).await;
        let tenant = world.tenant().await;
        let agent = greeter(&tenant, "notice").await;
        let mut page = Page::join(world, &tenant, &agent).await;
        page.play(2).await;
        page.speak().await;
        while ears.asked().is_empty() {
            page.next_moment().await;
        }
        // Until it is understood.
        world.settle().await;
        is_screened(world, &tenant, page).await;
    }
}
