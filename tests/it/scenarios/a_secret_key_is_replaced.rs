//! A secret key is replaced, as an operator does it, and the old one is thrown away: links that were sent go on working until
//! they end by themselves.
use crate::{
    on_both,
    world::{Tenant, World, client, minutes},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use runtime::keyring::{Keyring, purpose};
use serde_json::{Value, json};
use sha2::Sha256;

async fn status(link: &str) -> u16 {
    client().get(link).send().await.unwrap().status().as_u16()
}

async fn room(tenant: &Tenant, agent: &Value, seconds: u32) -> String {
    let room = json!({ "agent_id": agent, "expires_in_seconds": seconds });
    let room = tenant.api.post("/v1/rooms", room).await.ok();
    room["room_url"].as_str().unwrap().to_owned()
}

/// Sends a marketing mail; answers its id.
async fn letter(world: &World, tenant: &Tenant) -> uuid::Uuid {
    let letter =
        json!({ "to": "ann@example.com", "subject": "News", "text": "Bye: {{unsubscribe_url}}", "kind": "marketing" });
    let letter = tenant.api.post("/v1/email_messages", letter).await.ok();
    world.settle().await;
    letter["id"].as_str().unwrap().parse().unwrap()
}

/// The link in the header of the mail that was sent last.
fn unsubscribe(world: &World) -> String {
    let mail = world.mail_files().pop().unwrap();
    let unfolded = mail.replace("\r\n ", "").replace("\r\n\t", "");
    let mut lines = unfolded.lines();
    let link = lines.find_map(|line| line.strip_prefix("List-Unsubscribe: ")).unwrap();
    link.trim().trim_matches(['<', '>']).to_owned()
}

on_both! {
    async fn links_outlive_it_and_end_by_themselves(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = json!({ "name": "Ann", "prompt": "Be kind.", "recording": { "enabled": true } });
        let agent = tenant.api.post("/v1/agents", agent).await.ok()["id"].clone();
        tenant.api.post("/v1/sessions", json!({ "to_number": "+15002340000", "agent_id": agent })).await.ok();
        world.advance(minutes(2)).await;
        let recording = tenant.api.get("/v1/recordings").await.ok()["data"][0]["id"].as_str().unwrap().to_owned();
        let recording = tenant.api.get(&format!("/v1/recordings/{recording}")).await.ok();
        letter(world, &tenant).await;
        let (short, long) = (room(&tenant, &agent, 3600).await, room(&tenant, &agent, 7200).await);
        let sound = recording["download_url"].as_str().unwrap().to_owned();
        let links = [unsubscribe(world), short.clone(), long.clone(), sound.clone()];
        let number = tenant.api.post("/v1/verified_numbers", json!({ "phone_number": "+12025550140" })).await.ok();
        for link in &links {
            assert_eq!(status(link).await, 200, "{link}");
        }
        world.replace_secret_key().await;
        for link in &links {
            assert_eq!(status(link).await, 200, "{link}");
        }
        let confirm = format!("/v1/verified_numbers/{}/confirm", number["id"].as_str().unwrap());
        let confirmed = tenant.api.post(&confirm, json!({ "code": number["sandbox_code"] })).await.ok();
        assert_eq!(confirmed["status"], "verified", "a code that was just sent is good, too");
        // Nothing that is made up opens, and what is over is over.
        let forged = links[0].replace("/u/", "/u/A");
        assert_eq!(status(&forged).await, 404);
        world.advance(minutes(61)).await;
        let after = [status(&links[0]).await, status(&short).await, status(&long).await, status(&sound).await];
        assert_eq!(after, [200, 404, 200, 404]);
        world.replace_secret_key().await;
        assert_eq!([status(&short).await, status(&long).await], [404, 200]);
        world.advance(minutes(60)).await;
        assert_eq!(status(&long).await, 404);
    }

    /// A database of a version that signed links with keys derived from the secret key.
    async fn links_from_before_their_keys_were_stored_stay_good(world: &mut World) {
        use sea_orm::ConnectionTrait;
        let tenant = world.tenant().await;
        let id = letter(world, &tenant).await;
        let key = Keyring::new(&world.secret_key(), &[]).unwrap().derived(purpose::UNSUBSCRIBE_LINK).0;
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        mac.update(id.as_bytes());
        let token = URL_SAFE_NO_PAD.encode([&id.as_bytes()[..], &mac.finalize().into_bytes()[..16]].concat());
        let old = format!("{}/u/{token}", world.url);
        assert_eq!(status(&old).await, 404, "this database never signed with it");
        let forget = "DELETE FROM meta WHERE key = 'link_keys'";
        world.deps().db.write.execute_unprepared(forget).await.unwrap();
        // The first command of the new version replaces the key at once.
        world.replace_secret_key().await;
        assert_eq!(status(&old).await, 200);
        world.replace_secret_key().await;
        assert_eq!(status(&old).await, 200);
        // The newest letter is told by its id, and ids by their time.
        world.advance(minutes(1)).await;
        letter(world, &tenant).await;
        let new = unsubscribe(world);
        assert_ne!(new, old);
        assert_eq!(status(&new).await, 200);
    }
}
