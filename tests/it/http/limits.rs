//! What one workspace may use, with however many keys.
use crate::{
    on_both,
    world::{Answer, Api, Tenant, World, client},
};
use actors::leases::Of;
use callboard::{
    access::{self, NewKey},
    http::bodies::{BodyPermit, Owner},
    state::State,
};
use entities::{
    ids::ApiKeyId,
    values::{Env, Scopes, Text},
};
use futures_util::future::{join, join_all};
use reqwest::Method;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use uuid::Uuid;

fn state(world: &World) -> &State {
    &world.app.as_ref().unwrap().state
}

/// The cookie of the workspace's owner.
async fn cookie(world: &World, tenant: &Tenant) -> String {
    let deps = world.deps();
    let owner = entities::user::by_email(&deps.db.read, &format!("{}@example.com", tenant.slug)).await;
    let token = access::sign_in(deps, &owner.unwrap().unwrap(), None)
        .await
        .unwrap()
        .unwrap();
    format!("callboard={token}")
}

/// One request to the workspace's keys.
async fn keys(world: &World, tenant: &Tenant, cookie: &str, method: Method, id: &str) -> Answer {
    let api = Api {
        client: client(),
        ..tenant.api.clone()
    };
    let path = format!("{}/v1/_internal/t/{}/api-keys{id}", world.url, tenant.slug);
    let request = api.client.request(method.clone(), path).header("Cookie", cookie);
    api.send(match method {
        Method::POST => request.json(&json!({ "name": "x" })),
        _ => request,
    })
    .await
}

/// Bytes that a body may go on for.
const MOST: usize = 1 << 31;

fn address(world: &World) -> &str {
    world.url.trim_start_matches("http://")
}

/// Sends a body in chunks until the connection is closed: the answer, and how many bytes the service let us send. What is no
/// chunk of a body of a known length is a part of it.
async fn sent_until_closed(address: &str, head: String, chunk: &str) -> (String, usize) {
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(head.as_bytes()).await.unwrap();
    let (mut from, mut to) = connection.split();
    let chunk = [chunk.as_bytes(), &vec![b'1'; 0x10000], b"\r\n"].concat();
    let sending = async {
        let mut sent = 0;
        while sent < MOST && to.write_all(&chunk).await.is_ok() {
            sent += chunk.len();
        }
        sent
    };
    let reading = async {
        let mut answer = Vec::new();
        // A reset ends it as well.
        let _ = from.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    };
    join(reading, sending).await
}

on_both! {
    async fn bodies_that_do_not_end_fill_no_more_than_a_workspaces_share(world: &mut World) {
        const MIB: usize = 1024 * 1024;
        let (tenant, other) = (world.tenant().await, world.tenant().await);
        let bodies = &state(world).bodies;
        // As by 95 imports of which all but the last byte has come.
        let half_sent = (0..95).map_while(|_| {
            let mut permit = BodyPermit::begin(bodies, Owner::Workspace(tenant.id)).ok()?;
            permit.take(9 * MIB).ok().map(|()| permit)
        });
        let half_sent: Vec<_> = half_sent.collect();
        assert_eq!(half_sent.len(), 7);
        let upload = async |tenant: &Tenant| tenant.api.upload("/v1/dnc/import", "x".repeat(2 * MIB)).await;
        let refused = upload(&tenant).await;
        assert_eq!(refused.error(), (429, "rate_limited", None));
        assert!(refused.headers.contains_key("retry-after"));
        tenant.api.post("/v1/agents", json!({ "name": "Ann", "prompt": "Be kind." })).await.ok();
        assert_ne!(upload(&other).await.status.as_u16(), 429, "it has a share of its own");
        drop(half_sent);
        assert_ne!(upload(&tenant).await.status.as_u16(), 429);
        assert_eq!(bodies.held(), 0, "free again with the answer");
    }

    async fn who_is_refused_has_the_answer_while_the_body_is_still_to_come(world: &mut World) {
        let tenant = world.tenant().await;
        let key = tenant.api.key.clone();
        for (method, path, key, length, expected) in [
            ("POST", "/v1/dnc/import", key.as_str(), "Content-Length: 100000000", "413"),
            ("POST", "/v1/dnc/import", "vk_test_unknown", "Content-Length: 100000", "401"),
            ("POST", "/v1/agents", "vk_test_unknown", "Transfer-Encoding: chunked", "401"),
            ("HEAD", "/v1/agents", "vk_test_unknown", "Transfer-Encoding: chunked", "401"),
            ("HEAD", "/healthz", "", "Transfer-Encoding: chunked", "200"),
        ] {
            let head = format!(
                "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\nContent-Type: text/csv\r\n{length}\r\n\r\n",
                address(world)
            );
            let (answer, sent) = sent_until_closed(address(world), head, "10000\r\n").await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{length}: {answer}");
            assert!(answer.contains("connection: close"), "{answer}");
            let is_whole = method == "HEAD" || answer.contains("\"error\"");
            assert!(is_whole, "{answer}");
            assert!(sent < MOST, "{length}: the connection is closed");
        }
    }

    async fn more_keys_bring_a_workspace_no_more_requests(world: &mut World) {
        let (tenant, other) = (world.tenant().await, world.tenant().await);
        // As if with keys of its own that nobody else has used yet.
        let used = (0..1_000_u128).take_while(|n| {
            let key = ApiKeyId::from(Uuid::from_u128(n % 10));
            state(world).limits.request(key, tenant.id, &mut None).is_ok()
        });
        assert_eq!(used.count(), 400);
        let refused = tenant.api.get("/v1/me").await;
        assert_eq!(refused.error(), (429, "rate_limited", None));
        let shown = |name: &str| refused.headers[name].to_str().unwrap().to_owned();
        assert_eq!((shown("ratelimit-limit"), shown("ratelimit-remaining"), shown("ratelimit-reset")), ("400".into(), "0".into(), "2".into()));
        assert_eq!(shown("retry-after"), "1");
        other.api.get("/v1/me").await.ok();
        world.advance(crate::world::seconds(1)).await;
        tenant.api.get("/v1/me").await.ok();
    }

    async fn a_workspace_has_so_many_keys_and_makes_them_slowly(world: &mut World) {
        let tenant = world.tenant().await;
        let cookie = cookie(world, &tenant).await;
        let deps = world.deps();
        let mut commit = rules::commit::Commit::default();
        // Beside the one it has; and one that does not count, for it has expired.
        for n in 0..99 {
            let expires_at = (n == 0).then(|| deps.clock.now().plus_seconds(-1));
            let asked = NewKey { name: Text::parse("x").unwrap(), env: Env::Test, scopes: Scopes::all(), limits: Default::default(), expires_at };
            commit.changes.api_keys.push(access::new_key(deps.ids.next(), tenant.id, asked, deps.clock.now()).0);
        }
        deps.writer.commit(Of::Anybody, commit).await.unwrap();
        let asked = join_all((0..5).map(|_| keys(world, &tenant, &cookie, Method::POST, ""))).await;
        let made: Vec<_> = asked.iter().filter(|answer| answer.status.as_u16() == 201).collect();
        assert_eq!(made.len(), 1, "the hundredth");
        let full = keys(world, &tenant, &cookie, Method::POST, "").await;
        assert_eq!(full.error(), (403, "plan_limit", None));
        assert!(full.body["error"]["message"].as_str().unwrap().contains("revoke"), "says what to do");
        let id = format!("/{}", made[0].body["id"].as_str().unwrap());
        assert_eq!(keys(world, &tenant, &cookie, Method::DELETE, &id).await.status.as_u16(), 204);
        assert_eq!(keys(world, &tenant, &cookie, Method::POST, "").await.status.as_u16(), 201);

        while state(world).limits.key_made(tenant.id).is_ok() {}
        assert_eq!(keys(world, &tenant, &cookie, Method::POST, "").await.error(), (429, "rate_limited", None));
        let listed = keys(world, &tenant, &cookie, Method::GET, "").await;
        assert_eq!(listed.headers["ratelimit-limit"], "100");
        let session = runtime::keyring::sha256_hex(cookie.trim_start_matches("callboard=").as_bytes());
        while state(world).limits.dashboard(&session, &mut None).is_ok() {}
        assert_eq!(keys(world, &tenant, &cookie, Method::GET, "").await.error(), (429, "rate_limited", None));
    }
}
