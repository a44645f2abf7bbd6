//! Calls through a proxy that stays in the way.
use super::{
    scenarios,
    stage::{CALLEE, OURS, Stage, end},
};
use crate::{
    on_the_phone,
    world::phone::{
        kamailio::{Kamailio, Settings},
        sipp::Scenario,
    },
};
use serde_json::json;

on_the_phone! {
    /// 17. An outbound proxy that puts itself into the route: ACK and BYE go through it, too.
    async fn a_proxy_stays_in_the_way(stage: &mut Stage) needs [Kamailio, Sipp] {
        let (proxy, at, ear) = (stage.address(), stage.address(), stage.ear());
        let _proxy = Kamailio::start(Settings { behind: Some(at.port()), ..Settings::at(proxy.port()) }).await;
        // The host is nobody's: what is not sent to the proxy goes nowhere.
        let nobody = stage.address().port();
        let trunk = stage.trunk(nobody, json!({ "outbound_proxy": proxy.to_string() })).await;
        stage.number(OURS, &trunk, json!({})).await;
        let agent = stage.agent(json!({})).await;
        let mut sipp = Scenario::new(scenarios::ANSWERS, at.port()).with("rtp", ear.port()).start().await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        stage.is(&id, "in_progress").await;
        stage.hang_up(&id).await;
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
        sipp.succeeds().await;
        let invite = &sipp.got("INVITE")[0];
        assert!(invite.line().contains(&format!("{CALLEE}@127.0.0.1:{nobody}")), "its address is kept: {}", invite.line());
        assert!(invite.header("Record-Route").is_some(), "{invite:?}");
        for method in ["ACK", "BYE"] {
            let message = &sipp.got(method)[0];
            let ways = message.text.lines().filter(|line| line.starts_with("Via:")).count();
            assert_eq!(ways, 2, "{method} came through the proxy: {message:?}");
        }
    }
}
