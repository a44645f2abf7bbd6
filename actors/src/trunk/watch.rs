//! The task that speaks with one trunk's peer outside of calls: it looks up where the peer is, registers, asks whether it is there,
//! and notes on the board what that shows. It runs in the machine's time, as the peer does.
use super::{
    board::{Binding, TrunkState},
    reach::{Looked, Reach},
    speaking::{Machine, Speaking, arrived},
    standing::{Known, Standing, standing},
};
use crate::{
    deps::Deps,
    switchboard::{faults::Part, moments, phones::Switchboard, table::Arrival},
};
use adapters::trunk::{
    on_the_wire,
    peering::{Mute, Peering},
};
use entities::sip_trunk::Model;
use rules::effect::DispatchHint;
use sip::{
    digest::Authorizer,
    keepalive::{self, Keepalive},
    out_of_dialog::Sender,
    registration::{self, Registration, State},
};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// So long the end of the binding is waited for; it ends by itself if nobody answers.
const PARTING: Duration = Duration::from_secs(2);

pub struct Watch {
    reach: Reach,
    /// `None`: we do not register.
    registration: Option<Speaking<Registration>>,
    keepalive: Option<Speaking<Keepalive>>,
    /// Requests of the keep-alive in a row that nobody had answered.
    silences: u32,
    /// Both have begun: it was known where the peer is.
    has_begun: bool,
    registered: Option<Binding>,
}

enum Woken {
    Stopped,
    Registration(Arrival),
    Keepalive(Arrival),
    Looked(Looked),
    Time,
}

impl Watch {
    /// # Errors
    /// If nothing can be said to its peer at all.
    pub fn new(deps: Deps, phones: Switchboard, row: &Model) -> Result<Self, Mute> {
        let (id, peering) = ((row.tenant_id, row.id), Peering::of(row));
        let mut watch = Watch {
            reach: Reach::new(deps, phones, id, peering, Instant::now()),
            registration: None,
            keepalive: None,
            silences: 0,
            has_begun: false,
            registered: None,
        };
        if watch.reach.peering.register.enabled {
            let account = watch.reach.peering.account()?;
            let machine = Registration::new(account, watch.sender()?, watch.authorizer());
            watch.registration = watch.speaking(machine);
        }
        if let Some(interval) = watch.reach.peering.options_interval {
            let peer = watch.reach.peering.asked(interval)?;
            let machine = Keepalive::new(peer, watch.sender()?);
            watch.keepalive = watch.speaking(machine);
        }
        Ok(watch)
    }

    fn sender(&self) -> Result<Sender, Mute> {
        let Reach {
            deps, phones, peering, ..
        } = &self.reach;
        let transport = on_the_wire(peering.transport);
        let sent_by = phones.line().sent_by(transport).ok_or(Mute::NoSocket(transport))?;
        peering.sender(sent_by, phones.secret(), deps.ids.next())
    }

    fn authorizer(&self) -> Option<Authorizer> {
        let Reach {
            deps,
            phones,
            peering,
            trunk,
            ..
        } = &self.reach;
        let credentials = peering.credentials(&deps.keyring).unwrap_or_else(|error| {
            tracing::error!(%trunk, %error, "a trunk's password cannot be opened");
            None
        })?;
        Some(Authorizer::new(credentials, phones.secret(), trunk.0.as_bytes()))
    }

    fn speaking<M: Machine>(&self, machine: M) -> Option<Speaking<M>> {
        let speaking = Speaking::new(machine, self.reach.phones.line());
        let log = |why| tracing::error!(trunk = %self.reach.trunk, ?why, "a trunk's peer cannot be spoken with");
        speaking.map_err(log).ok()
    }

    /// Until it is told to stop; then the binding ends, too.
    pub async fn run(mut self, mut stop: oneshot::Receiver<()>) {
        self.note();
        loop {
            // What another process has taken over is its to register.
            let deps = self.reach.deps.clone();
            tokio::select! {
                biased;
                passed = deps.pass(self.reach.tenant) => match passed {
                    Ok(()) => {}
                    Err(_) => return,
                },
                // Nobody knows whose the binding is: it ends by itself, and the next one to speak is not waited for.
                _ = &mut stop => return,
            }
            assert!(!self.reach.phones.is_to_fail(Part::Trunk), "a fault on purpose");
            self.reach.look(Instant::now());
            match self.woken(&mut stop).await {
                Woken::Stopped => break,
                woken => self.hear(woken),
            }
            self.note();
        }
        self.part().await;
    }

    async fn woken(&mut self, stop: &mut oneshot::Receiver<()>) -> Woken {
        let deadline = self.deadline();
        let (registration, keepalive) = (&mut self.registration, &mut self.keepalive);
        tokio::select! {
            biased;
            _ = stop => Woken::Stopped,
            arrival = arrived(registration) => Woken::Registration(arrival),
            arrival = arrived(keepalive) => Woken::Keepalive(arrival),
            looked = self.reach.looked() => Woken::Looked(looked),
            () = moments::until(deadline) => Woken::Time,
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let registration = self.registration.as_ref().map(|of| &of.machine);
        // It has ended when that has passed, which is to be noted.
        let bound_until = registration.and_then(Registration::bound_until);
        let moments = [
            self.reach.deadline(),
            registration.and_then(Registration::deadline),
            bound_until.filter(|until| *until > Instant::now()),
            self.keepalive.as_ref().and_then(|of| of.machine.deadline()),
        ];
        moments.into_iter().flatten().min()
    }

    fn hear(&mut self, woken: Woken) {
        let now = Instant::now();
        match woken {
            Woken::Stopped => {}
            Woken::Looked(looked) => {
                self.reach.take_in(looked, now);
                if self.reach.is_found() && !self.has_begun {
                    self.begin(now);
                }
            }
            Woken::Registration(arrival) => {
                if let Some(of) = &mut self.registration {
                    of.hear(arrival, now);
                }
            }
            Woken::Keepalive(arrival) => {
                if let Some(of) = &mut self.keepalive {
                    of.hear(arrival, now);
                }
            }
            Woken::Time => {
                if let Some(of) = &mut self.registration {
                    of.machine.tick(now);
                }
                if let Some(of) = &mut self.keepalive {
                    of.machine.tick(now);
                }
            }
        }
        self.say(now);
    }

    fn begin(&mut self, now: Instant) {
        self.has_begun = true;
        if let Some(of) = &mut self.registration {
            of.machine.start(now);
        }
        if let Some(of) = &mut self.keepalive {
            of.machine.start(now);
        }
    }

    /// Sends what the machines want sent, and takes in what they have found out.
    fn say(&mut self, now: Instant) {
        if let Some(mut of) = self.registration.take() {
            while let Some(output) = of.machine.poll() {
                match output {
                    registration::Output::Send(bytes) => {
                        if !self.reach.send(&bytes, &mut of.target, &of.mailbox, now) {
                            of.machine.failed(now);
                        }
                    }
                    registration::Output::Changed(state) => self.changed(&state, &mut of, now),
                    registration::Output::Learned(seen) => {
                        if let Some((contact, sent_by)) = self.reach.seen_as(seen) {
                            of.machine.readdress(contact, sent_by, now);
                        }
                    }
                }
            }
            self.registration = Some(of);
        }
        if let Some(mut of) = self.keepalive.take() {
            while let Some(output) = of.machine.poll() {
                match output {
                    keepalive::Output::Send(bytes) => {
                        if !self.reach.send(&bytes, &mut of.target, &of.mailbox, now) {
                            of.machine.failed(now);
                        }
                    }
                    keepalive::Output::Up => self.reach.out_of_trouble(),
                    keepalive::Output::Down => self.reach.in_trouble("it answers no OPTIONS request".into()),
                }
            }
            self.weigh_silence(&mut of, now);
            self.keepalive = Some(of);
        }
    }

    /// Each silence leads to another of its addresses, if there is one.
    fn weigh_silence(&mut self, of: &mut Speaking<Keepalive>, now: Instant) {
        let silences = of.machine.silences();
        if silences > self.silences {
            self.reach.failed(&mut of.target, now);
        } else if silences < self.silences {
            self.reach.answered(of.target.as_ref());
        }
        self.silences = silences;
    }

    fn changed(&mut self, state: &State, of: &mut Speaking<Registration>, now: Instant) {
        let outcome = match state {
            State::Off | State::Registering => return,
            State::Registered { until } => {
                self.registered = Some(Binding::new(*until, now, self.reach.deps.clock.now()));
                self.reach.answered(of.target.as_ref());
                self.reach.out_of_trouble();
                "registered"
            }
            State::Refused { code, reason, .. } => {
                self.reach.answered(of.target.as_ref());
                self.reach.in_trouble(format!("the registrar says {code} {reason}"));
                "refused"
            }
            State::Failed { .. } => {
                self.reach.failed(&mut of.target, now);
                self.reach
                    .in_trouble("the registrar does not answer, or is in trouble itself".into());
                "failed"
            }
        };
        metrics::counter!("callboard_sip_registrations_total", "outcome" => outcome).increment(1);
    }

    /// On the board, where dispatchers and users look.
    fn note(&self) {
        let Reach {
            deps,
            tenant,
            trunk,
            peering,
            ..
        } = &self.reach;
        let now = Instant::now();
        let machine = self.registration.as_ref().map(|of| &of.machine);
        let bound_until = machine.and_then(Registration::bound_until);
        let is_bound = bound_until.is_some_and(|until| until > now);
        // Where there was no room to speak, we are not registered.
        let off = State::Off;
        let unheard = peering.register.enabled.then_some(&off);
        let Standing { up, refused } = standing(Known {
            is_found: self.reach.is_found(),
            answers: self.keepalive.as_ref().and_then(|of| of.machine.is_up()),
            registration: machine.map(Registration::state).or(unheard),
            is_bound,
        });
        metrics::gauge!("callboard_trunk_up", "trunk" => trunk.to_string()).set(f64::from(u8::from(up)));
        let state = TrunkState {
            up,
            refused,
            registered: self.registered.filter(|_| is_bound),
            ..TrunkState::default()
        };
        if deps.trunks.set(*trunk, state) {
            deps.router.dispatcher(*tenant, DispatchHint::CampaignsChanged);
        }
    }

    /// Ends the binding.
    async fn part(&mut self) {
        let started = Instant::now();
        if let Some(of) = &mut self.registration {
            of.machine.stop(started);
        }
        self.say(started);
        let by = started + PARTING;
        while let Some(of) = &mut self.registration
            && *of.machine.state() != State::Off
            && Instant::now() < by
        {
            let deadline = of.machine.deadline().map_or(by, |at| at.min(by));
            let woken = tokio::select! {
                biased;
                arrival = of.mailbox.arrived() => Woken::Registration(arrival),
                () = moments::until(Some(deadline)) => Woken::Time,
            };
            self.hear(woken);
        }
    }
}
