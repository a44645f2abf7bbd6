//! Where live calls may go, and over what: countries, blocked prefixes, a trunk that is paused. What is not allowed is refused when
//! it is asked for, left out when it is dialled, and never committed.
use crate::{
    on_both,
    world::{Tenant, World},
};
use actors::{
    leases::Of,
    people::{People, people},
    reach,
    session::intake::{self, IfClosed},
};
use entities::{
    Error,
    campaign::Channel,
    changes::Guard,
    contact::Address,
    ids::{AgentId, TrunkId},
    session::Model as Session,
    tenant,
    values::{Countries, Env},
};
use rules::commit::Commit;
use serde_json::json;

/// As the operator's command does it; `None`: its own country.
async fn allow(world: &World, tenant: &Tenant, countries: Option<&str>) {
    let before = tenant::load(&world.deps().db.read, tenant.id).await.unwrap();
    let mut commit = Commit::default();
    commit.changes.tenants.push(tenant::Model {
        countries: countries.map(|names| Countries::parse(names).unwrap()),
        version: before.version + 1,
        ..before
    });
    world.deps().writer.commit(Of::Anybody, commit).await.unwrap();
}

/// What a live call to that number is answered with, if not that it may be made: code, field, words.
async fn refused(world: &World, tenant: &Tenant, to: &str) -> Option<(&'static str, String)> {
    let deps = world.deps();
    let agent: AgentId = tenant.agent().await.parse().unwrap();
    let row = Session::new(
        (tenant.id, Env::Live),
        deps.ids.next(),
        (agent, 1),
        to.parse().unwrap(),
        world.clock.now(),
    );
    match intake::check(deps, row, "en-US", IfClosed::Reject).await {
        Err(Error::Forbidden { field, reason }) => Some((field, reason)),
        _ => None,
    }
}

async fn may_be_dialled(world: &World, tenant: &Tenant, to: &str) -> bool {
    let whom = Address::Number(to.parse().unwrap());
    let whose = People {
        owner: (tenant.id, Env::Live),
        channel: Channel::Phone,
        itself: None,
    };
    let deps = world.deps();
    let found = people(deps, &deps.db.read, whose, vec![whom.clone()], world.clock.now())
        .await
        .unwrap();
    found[&whom].has_number
}

on_both! {
    async fn a_workspace_calls_its_own_country_until_the_operator_says_more(world: &mut World) {
        let tenant = world.tenant().await;
        let (own, foreign) = ("+12025550140", "+4930901820");
        // A workspace of the United States; what is set, and whether each of the two may be called.
        for (countries, expected) in [(None, [true, false]), (Some("DE,AT"), [false, true]), (Some("US,DE"), [true, true]), (None, [true, false])] {
            allow(world, &tenant, countries).await;
            for (number, allowed) in [own, foreign].into_iter().zip(expected) {
                let found = refused(world, &tenant, number).await;
                assert_eq!(found.is_none(), allowed, "{number}, {countries:?}: {found:?}");
                assert_eq!(may_be_dialled(world, &tenant, number).await, allowed, "{number}, {countries:?}");
                let transfer = reach::is_callable(world.deps(), tenant.id, &number.parse().unwrap()).await;
                assert_eq!(transfer.is_ok(), allowed, "{number}, {countries:?}: {transfer:?}");
            }
        }
        let (field, words) = refused(world, &tenant, foreign).await.unwrap();
        assert_eq!(field, "to_number");
        assert!(words.contains("DE") && words.contains("US"), "{words}");
    }

    async fn a_blocked_prefix_is_called_by_nobody(world: &mut World) {
        world.change_setting("blocked_prefixes", "+1202555,+44".into()).await;
        let tenant = world.tenant().await;
        for (number, allowed) in [("+12025550140", false), ("+12125550140", true)] {
            assert_eq!(refused(world, &tenant, number).await.is_none(), allowed, "{number}");
            assert_eq!(may_be_dialled(world, &tenant, number).await, allowed, "{number}");
        }
        let transfer = reach::is_callable(world.deps(), tenant.id, &"+12025550140".parse().unwrap()).await;
        assert!(matches!(transfer, Err(Error::Forbidden { field: "to_number", .. })), "{transfer:?}");
    }

    /// Test calls reach nobody outside.
    async fn the_sandbox_has_no_countries(world: &mut World) {
        let tenant = world.tenant().await;
        allow(world, &tenant, Some("DE")).await;
        let id = tenant.run_campaign(&["+15002340000"], json!({})).await;
        world.advance(crate::world::minutes(2)).await;
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
    }

    async fn a_suspended_workspace_hands_no_call_over(world: &mut World) {
        let tenant = world.tenant().await;
        let to = "+12025550140".parse().unwrap();
        reach::is_callable(world.deps(), tenant.id, &to).await.unwrap();
        let mut commit = Commit::default();
        commit.changes.blocks.push(entities::dispatch_block::Model {
            tenant_id: tenant.id,
            env: Env::Live,
            reason: entities::dispatch_block::Reason::Suspension,
            since: world.clock.now(),
        });
        world.deps().writer.commit(Of::Anybody, commit).await.unwrap();
        let found = reach::is_callable(world.deps(), tenant.id, &to).await;
        assert!(matches!(found, Err(Error::PlanLimit(_))), "{found:?}");
    }

    /// The guard of the intent itself, whatever was planned: a pause, a change or a deletion holds from its commit on.
    async fn no_dial_is_committed_over_a_trunk_that_has_changed(world: &mut World) {
        let tenant = world.tenant().await;
        let made = tenant.api.post("/v1/sip_trunks", json!({ "name": "Carrier", "host": "sip.example.com" })).await.ok();
        let path = format!("/v1/sip_trunks/{}", made["id"].as_str().unwrap());
        let trunk: TrunkId = made["id"].as_str().unwrap().parse().unwrap();
        let dial = async |version| {
            let mut commit = Commit::default();
            commit.changes.guards.push(Guard::Trunk(trunk, version));
            world.deps().writer.commit(Of::Anybody, commit).await
        };
        dial(1).await.unwrap();
        assert!(matches!(dial(2).await, Err(Error::Stale)));
        assert_eq!(tenant.api.patch(&path, json!({ "paused": true })).await.ok()["paused"], true);
        assert!(matches!(dial(1).await, Err(Error::Stale)), "paused");
        tenant.api.patch(&path, json!({ "paused": false })).await.ok();
        dial(3).await.unwrap();
        assert_eq!(tenant.api.delete(&path).await.status, 204);
        for version in [3, 4] {
            assert!(matches!(dial(version).await, Err(Error::Stale)), "deleted");
        }
    }

    /// A dial that was planned with other countries is planned anew.
    async fn a_change_of_countries_holds_from_its_commit_on(world: &mut World) {
        let tenant = world.tenant().await;
        let version = tenant::load(&world.deps().db.read, tenant.id).await.unwrap().version;
        let dial = async |version| {
            let mut commit = Commit::default();
            commit.changes.guards.push(Guard::Free(tenant.id, Env::Live, version));
            world.deps().writer.commit(Of::Anybody, commit).await
        };
        dial(version).await.unwrap();
        allow(world, &tenant, Some("DE")).await;
        assert!(matches!(dial(version).await, Err(Error::Stale)));
        dial(version + 1).await.unwrap();
    }

    /// Each live call goes over the trunk of the number that it shows.
    async fn the_trunk_of_a_call_is_that_of_its_number(world: &mut World) {
        let tenant = world.tenant().await;
        let mut trunks = Vec::new();
        for (n, number) in ["+12025550121", "+12025550122"].into_iter().enumerate() {
            let made = tenant.api.post("/v1/sip_trunks", json!({ "name": format!("Carrier {n}"), "host": "sip.example.com" })).await.ok();
            tenant.api.post("/v1/numbers", json!({ "phone_number": number, "trunk_id": made["id"] })).await.ok();
            world.claim_number(tenant.id, number).await;
            trunks.push(made["id"].as_str().unwrap().parse::<TrunkId>().unwrap());
        }
        let trunk_of = async |env, number: &str| {
            let found = actors::session::caller_id::trunk_of(&world.deps().db.read, (tenant.id, env), &number.parse().unwrap()).await;
            found.unwrap()
        };
        assert_eq!(trunk_of(Env::Live, "+12025550121").await, Some(trunks[0]));
        assert_eq!(trunk_of(Env::Live, "+12025550122").await, Some(trunks[1]));
        assert_eq!(trunk_of(Env::Test, "+12025550122").await, None);
        assert_eq!(trunk_of(Env::Live, "+12025550199").await, None, "nobody's");
    }
}
