//! `callboard sip check`: what a trunk's peer says when it is asked, and what to do about it. From sockets of its own, beside a running
//! `serve`, whose registrations stay as they are.
mod call;

use super::{
    commands::{open, print},
    serve::StopSignals,
};
use crate::{app::outbound, error::CannotStart};
use actors::switchboard::trial::{Outcome, Trial, Tried};
use adapters::{
    outbound::{Outbound, trouble},
    trunk::{
        advice,
        peering::Peering,
        ping::{self, Heard, Pong},
        registrar,
        resolve::resolve,
    },
};
use clap::Subcommand;
use entities::{
    ids::TrunkId,
    sip_trunk::{self, Model},
    tenant,
};
use rules::delivery::failure::Failure;
use serde::Serialize;
use sip::ladder::{Direction, Ladder};
use std::path::PathBuf;
use tokio::sync::watch;

#[derive(Subcommand)]
pub enum Sip {
    /// Look a trunk's peer up, ask whether it is there and, if the trunk registers, whether it takes us for who we say we are
    ///
    /// From sockets of its own, beside a running `serve`: no registration changes, and no phone rings but that of --call.
    Check {
        /// The trunk's id, as the API shows it
        #[arg(long, value_name = "ID")]
        trunk: String,
        /// Then call this number: it rings, and whoever picks up hears one sentence
        ///
        /// A real call, which the carrier may charge for; no session of the workspace. It may go where the workspace's calls
        /// may go, and to no number on its do-not-call list; calling hours and caps are not asked.
        #[arg(long, value_name = "NUMBER")]
        call: Option<String>,
        /// The number that the call shows, one of the trunk's [default: the first of them]
        #[arg(long, value_name = "NUMBER", requires = "call")]
        from: Option<String>,
    },
}

impl Sip {
    pub async fn run(self, config: Option<PathBuf>, json: bool) -> Result<(), CannotStart> {
        let Sip::Check { trunk, call, from } = self;
        let (settings, db, _, _) = open(config).await?;
        let id = trunk
            .parse::<TrunkId>()
            .map_err(|why| CannotStart(format!("--trunk: {why}")))?;
        let row = sip_trunk::by_id(&db.read, id).await?;
        let workspace = tenant::load(&db.read, row.tenant_id).await?.slug;
        let keyring = settings.keyring()?;
        let client = outbound(&settings, &tokio::runtime::Handle::current())?;
        let peering = Peering::of(&row);
        let credentials = peering.credentials(&keyring)?;
        let has_password = credentials.is_some();
        // Whether it may be placed, before anything is said to anybody.
        let trial = match call {
            Some(to) => {
                let ways = (client.clone(), credentials.clone());
                Some(call::plan((&settings, &db), &row, (from, to), ways).await?)
            }
            None => None,
        };
        let mut report = Report::begin(&row, workspace, &client).await;
        if report.name.is_well {
            let heard = ping::ping(&client, &peering).await;
            let is_reached = call::is_reached(&heard.outcome);
            // Whom nobody asks in earnest may keep silent.
            let is_needed = peering.options_interval.is_some();
            report.add("OPTIONS", is_needed, heard, |pong| {
                advice::of_options(pong.status).map(|advice| (true, advice))
            });
            if peering.register.enabled {
                let heard = registrar::ask(&client, &peering, credentials).await;
                report.add("REGISTER", true, heard, |pong| {
                    advice::of_registrar(pong.status, has_password).map(|advice| (false, advice))
                });
            }
            if let Some(trial) = trial {
                report.call(trial, is_reached, has_password).await?;
            }
        }
        db.close().await;
        match json {
            true => print(&report),
            false => report.say(),
        }
        if report.is_well() {
            Ok(())
        } else if report.is_stopped {
            Err(CannotStart("the call was stopped before its end".into()))
        } else {
            Err(CannotStart("the trunk cannot be used as it is".into()))
        }
    }
}

#[derive(Serialize)]
struct Report {
    trunk: TrunkId,
    title: String,
    workspace: String,
    name: Finding,
    asked: Vec<Finding>,
    ladder: Vec<Step>,
    #[serde(skip)]
    is_stopped: bool,
}

/// What became of one question.
#[derive(Serialize)]
struct Finding {
    what: &'static str,
    is_well: bool,
    said: String,
    advice: Option<&'static str>,
}

/// Something that was said.
#[derive(Serialize)]
struct Step {
    /// Since the first step of its conversation.
    after_ms: u64,
    sent: bool,
    what: String,
}

impl Report {
    async fn begin(row: &Model, workspace: String, client: &Outbound) -> Self {
        let (definition, peering) = (&row.definition, Peering::of(row));
        let next_hop = peering.next_hop();
        let name = match resolve(client, next_hop, peering.transport).await {
            Ok(found) => {
                let addresses: Vec<_> = found.addresses.iter().map(ToString::to_string).collect();
                Finding {
                    what: "name",
                    is_well: true,
                    said: format!("{next_hop} leads to {}", addresses.join(", ")),
                    advice: None,
                }
            }
            Err(failure) => Finding::of_failure("name", &failure),
        };
        Report {
            trunk: row.id,
            title: definition.name.to_string(),
            workspace,
            name,
            asked: Vec::new(),
            ladder: Vec::new(),
            is_stopped: false,
        }
    }

    /// `judge`: is an answer well all the same, and what is to be done about it? `None`: it is well.
    fn add(
        &mut self,
        what: &'static str,
        is_needed: bool,
        heard: Heard,
        judge: impl FnOnce(&Pong) -> Option<(bool, &'static str)>,
    ) {
        self.asked.push(match heard.outcome {
            Ok(pong) => {
                let judged = judge(&pong);
                Finding {
                    what,
                    is_well: judged.is_none_or(|(is_well, _)| is_well),
                    said: format!("{} {} after {} ms", pong.status, pong.reason, pong.took.as_millis()),
                    advice: judged.map(|(_, advice)| advice),
                }
            }
            Err(failure) => Finding {
                is_well: !is_needed,
                ..Finding::of_failure(what, &failure)
            },
        });
        self.ladder.extend(steps(&heard.ladder));
    }

    async fn call(&mut self, trial: Trial, is_reached: bool, has_password: bool) -> Result<(), CannotStart> {
        let tried = match is_reached {
            true => run(trial).await?,
            false => Err("nothing can be sent to the peer".into()),
        };
        self.is_stopped = tried
            .as_ref()
            .is_ok_and(|tried| matches!(tried.outcome, Outcome::Stopped { .. }));
        let (is_well, said, advice) = match &tried {
            Ok(tried) => call::judged(&tried.outcome, has_password),
            Err(why) => (false, format!("not placed: {}", trouble::plain(why.clone())), None),
        };
        self.asked.push(Finding {
            what: "call",
            is_well,
            said,
            advice,
        });
        let ladders = tried.iter().flat_map(|tried| &tried.ladders);
        self.ladder.extend(ladders.flat_map(steps));
        Ok(())
    }

    fn is_well(&self) -> bool {
        self.name.is_well && self.asked.iter().all(|finding| finding.is_well)
    }

    fn say(&self) {
        println!("{} of {} ({})", self.title, self.workspace, self.trunk);
        for finding in std::iter::once(&self.name).chain(&self.asked) {
            let mark = if finding.is_well { "ok  " } else { "FAIL" };
            println!("  {mark} {:<9} {}", finding.what, finding.said);
            if let Some(advice) = finding.advice {
                println!("       {:<9} {advice}", "");
            }
        }
        if !self.ladder.is_empty() {
            println!("what was said:");
        }
        for step in &self.ladder {
            let arrow = if step.sent { "->" } else { "<-" };
            println!("  {:>6} ms  {arrow} {}", step.after_ms, step.what);
        }
    }
}

impl Finding {
    fn of_failure(what: &'static str, failure: &Failure) -> Self {
        Finding {
            what,
            is_well: false,
            said: ping::words(failure),
            advice: Some(advice::of_failure(failure)),
        }
    }
}

/// Whoever interrupts it, hangs up.
async fn run(trial: Trial) -> Result<Result<Tried, String>, CannotStart> {
    let mut signals = StopSignals::listen()?;
    let (stop, stopped) = watch::channel(false);
    let listening = tokio::spawn(async move {
        signals.next().await;
        eprintln!("hanging up");
        stop.send_replace(true);
    });
    let tried = trial.run(stopped).await;
    listening.abort();
    Ok(tried)
}

fn steps(ladder: &Ladder) -> Vec<Step> {
    ladder
        .timed()
        .map(|(after_ms, step)| Step {
            after_ms,
            sent: step.direction == Direction::Sent,
            what: step.what.to_string(),
        })
        .collect()
}
