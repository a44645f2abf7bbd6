//! What the brain wants done: looked at, done while the transport goes on, and told to it.
use super::{
    Caller, Conversation, Next,
    functions::{self, Invoked, Occasion},
    moments::WORKING,
    speech_out::Over,
    transport::CallTransport,
};
use adapters::brain::{Heard, ToolResult};
use entities::{
    Result,
    function::Model as Function,
    ids::FunctionId,
    session::EndedBy,
    transcript::{Invocation, InvocationStatus, ToolCall},
    values::E164,
};
use rules::{
    conversation::{
        guard::{self, Allowed},
        schema,
    },
    session::{
        command::{Command, Return, TimedOut},
        log::Answered,
    },
};
use serde_json::{Value, json};
use std::pin::pin;

impl<L: CallTransport> Conversation<L> {
    /// Does what the model asked for, one after the other, as far as it may.
    pub(super) async fn work(&mut self, calls: Vec<(String, String, String)>) -> Result<Next, Over> {
        let mut results = Vec::new();
        let mut ends = false;
        for (call_id, name, arguments) in calls {
            if let Some(no) = self.judge.heard() {
                return Err(self.obey(no).await);
            }
            let output = match self.tool_policy.look(&self.tool_set, &self.answered, &name, &arguments) {
                Ok(Allowed::Function(function, arguments)) => {
                    self.invoke(&call_id, &function, &arguments, false).await?
                }
                Ok(Allowed::Transfer(to)) if !self.may_reach(&to) => {
                    let why = "the operator does not allow calls to this number";
                    self.speech_out.tell(Command::Note {
                        kind: "refused",
                        detail: format!("{name}: {why}"),
                    });
                    functions::failed(why)
                }
                Ok(Allowed::Transfer(to)) => match self.speech_out.session_link.ask(Command::Transfer { to }).await {
                    // The transport is told by the session: it comes as an event.
                    Ok(()) if self.speech_out.session_link.is_live() => return Ok(Next::Listen),
                    Ok(()) => {
                        self.speech_out.tell(Command::Transferred);
                        return Err(Over);
                    }
                    Err(error) => functions::failed(&error.to_string()),
                },
                Ok(Allowed::End) => {
                    ends = true;
                    json!({ "status": "ok" })
                }
                Ok(Allowed::Dispose { code, note }) => {
                    self.speech_out.tell(Command::Dispose { code, note });
                    json!({ "status": "ok" })
                }
                Ok(Allowed::Answer { key, question, value }) => {
                    self.answered.push(key.clone());
                    self.speech_out.tell(Command::NoteAnswer(Answered {
                        key,
                        question,
                        value,
                        evidence_turn: self.speech_out.last_heard,
                    }));
                    json!({ "status": "ok" })
                }
                Err(why) => {
                    let detail = format!("{}: {why}", guard::clean(&name, 64));
                    self.speech_out.tell(Command::Note {
                        kind: "refused",
                        detail,
                    });
                    json!({ "error": "refused", "message": why })
                }
            };
            results.push(ToolResult {
                call_id,
                output: output.to_string(),
            });
        }
        if ends {
            self.close().await;
            return Err(self.end_with(Command::HangUp(EndedBy::Agent)).await);
        }
        Ok(Next::Heard(Heard::Results(results)))
    }

    /// Calls a function of the user's. `slow`: the sandbox lets it take longer than it may.
    pub(super) async fn invoke(
        &mut self,
        call_id: &str,
        function: &Function,
        arguments: &Value,
        slow: bool,
    ) -> Result<Value, Over> {
        let timeout_ms = i64::from(function.definition.timeout_ms.get());
        self.begin_call(call_id, &function.name, arguments, timeout_ms);
        let mut invoked = match &self.caller {
            Caller::Live(deps) => {
                let (deps, call) = (deps.clone(), self.call.clone());
                let work = functions::invoke(&deps, function, arguments, Occasion::Talk(&call));
                self.beside(work).await?.unwrap_or_else(|error| {
                    tracing::error!(%error, "a function could not be called");
                    not_called()
                })
            }
            Caller::Stubbed(answers) => Invoked {
                status: InvocationStatus::Succeeded,
                http_status: 200,
                output: answers.get(&function.name).cloned().unwrap_or(Value::Null),
                duration_ms: 0,
            },
        };
        if slow {
            let rest = (timeout_ms - invoked.duration_ms).max(0);
            self.dawdle(rest).await?;
            invoked = late(timeout_ms);
        }
        self.end_call(call_id, (function.id, &function.name, timeout_ms), &invoked)
            .await;
        Ok(invoked.output)
    }

    /// Works beside the transport: a transfer that the API wants meanwhile is taken up at once. If nobody takes over, the work goes
    /// on. Where it takes its time, a moment is asked for.
    pub(super) async fn beside<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Over> {
        let mut work = pin!(work);
        let mut patience = [self.stock_phrases().bear_with_me].into_iter();
        loop {
            // Thrown away before anything else is waited for: a clock stands still until whoever it has woken goes on.
            let moment = self.moments.due(WORKING);
            let to = tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                to = self.speech_out.transport.wanted() => Some(to),
                () = moment => None,
            };
            let words = match &to {
                Some(_) => "",
                None => patience.next().unwrap_or(self.stock_phrases().still_working),
            };
            let mut done = None;
            {
                let mut meanwhile = pin!(self.meanwhile(to, words));
                loop {
                    tokio::select! {
                        biased;
                        outcome = &mut meanwhile => break outcome?,
                        result = &mut work, if done.is_none() => done = Some(result),
                    }
                }
            }
            if let Some(done) = done {
                return Ok(done);
            }
        }
    }

    /// Hands over to somebody, or asks for a moment with these words.
    async fn meanwhile(&mut self, to: Option<E164>, words: &str) -> Result<(), Over> {
        match to {
            Some(to) => self.hand_over(&to).await,
            None => {
                self.ask_for_a_moment(words).await;
                Ok(())
            }
        }
    }

    /// With these words, unless somebody has asked for one a short time ago. It answers nothing.
    async fn ask_for_a_moment(&mut self, words: &str) {
        if !self.moments.ask() {
            return;
        }
        let stopwatch = self.speech_out.transport.stopwatch();
        stopwatch.fill(true);
        self.speech_out.say(words, None).await;
        stopwatch.fill(false);
    }

    pub(super) async fn dawdle(&mut self, ms: i64) -> Result<(), Over> {
        let mut left = u64::try_from(ms).unwrap_or(0);
        while let Some((to, rest)) = self.speech_out.transport.dawdle(left).await {
            left = rest;
            self.hand_over(&to).await?;
        }
        Ok(())
    }

    pub(super) fn begin_call(&mut self, call_id: &str, name: &str, arguments: &Value, timeout_ms: i64) {
        self.speech_out.turns += 1;
        let until = self.now().plus_millis(timeout_ms);
        self.speech_out.tell(Command::Call {
            call: ToolCall {
                id: call_id.to_owned(),
                name: name.to_owned(),
                arguments: arguments.clone(),
            },
            own: true,
            until,
        });
    }

    pub(super) async fn end_call(
        &mut self,
        call_id: &str,
        (function_id, name, timeout_ms): (FunctionId, &str, i64),
        invoked: &Invoked,
    ) {
        self.speech_out.turns += 1;
        let timed_out = (invoked.status == InvocationStatus::TimedOut).then(|| TimedOut {
            function_id,
            name: name.to_owned(),
            timeout_ms,
        });
        let late = timed_out.is_some();
        self.speech_out.tell(Command::Return(Return {
            call_id: call_id.to_owned(),
            output: invoked.output.to_string(),
            invocation: Some(Invocation {
                name: name.to_owned(),
                status: invoked.status,
                duration_ms: invoked.duration_ms,
            }),
            timed_out,
        }));
        if late {
            let words = self.stock_phrases().still_working;
            self.ask_for_a_moment(words).await;
        }
    }

    /// The sandbox's slow function: the agent's first one, or one that exists only there.
    pub(super) async fn slow_function(&mut self) -> Result<(), Over> {
        let call_id = "sandbox_slow";
        if let Some(function) = self.tool_set.functions.first().cloned() {
            let arguments = schema::sample(&function.definition.parameters);
            return self.invoke(call_id, &function, &arguments, true).await.map(drop);
        }
        self.begin_call(call_id, SLOW_NAME, &json!({}), SLOW_MS);
        self.dawdle(SLOW_MS).await?;
        let nobody = FunctionId(SLOW_ID);
        self.end_call(call_id, (nobody, SLOW_NAME, SLOW_MS), &late(SLOW_MS))
            .await;
        Ok(())
    }
}

/// The sandbox's own function: the same in every workspace.
const SLOW_ID: uuid::Uuid = uuid::uuid!("01900000-0000-7000-8000-000000000008");

const SLOW_NAME: &str = "sandbox_lookup";

const SLOW_MS: i64 = 10_000;

fn late(timeout_ms: i64) -> Invoked {
    Invoked {
        status: InvocationStatus::TimedOut,
        http_status: 0,
        output: functions::timed_out(),
        duration_ms: timeout_ms,
    }
}

fn not_called() -> Invoked {
    Invoked {
        status: InvocationStatus::Failed,
        http_status: 0,
        output: functions::failed("the function could not be called"),
        duration_ms: 0,
    }
}
