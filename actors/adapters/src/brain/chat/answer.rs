//! One answer of the model, as it comes: words become a clause and then sentences, fragments of calls become calls.
use super::{
    Chat,
    calls::Calls,
    protocol::{Completion, Request, ToolCall, error_message},
    provider::{MAX_BODY, Patience, Refusal, read},
};
use crate::{
    brain::{Act, Failure},
    provider_http::with_cause,
    sse::{Event, Parser},
};
use futures_util::stream::{self, BoxStream, StreamExt};
use reqwest::{Response, header::CONTENT_TYPE};
use rules::conversation::pieces::Pieces;
use serde_json::Value;
use std::{collections::VecDeque, time::Duration};

/// After the model is done only bookkeeping follows; nobody waits long for that.
const AFTERMATH: Duration = Duration::from_secs(1);

/// What is noted in the history in the moment in which the talk takes it, so that an answer may be dropped anywhere.
enum Ready {
    Words(String),
    Calls(Vec<ToolCall>),
    Call(ToolCall),
}

enum Stage {
    Unasked,
    Reading {
        response: Box<Response>,
        events: Parser,
        bytes: usize,
    },
    Over,
}

pub struct Answer<'a> {
    chat: &'a mut Chat,
    patience: Patience,
    stage: Stage,
    pieces: Pieces,
    calls: Calls,
    ready: VecDeque<Ready>,
    /// Comes after all that is ready.
    failure: Option<Failure>,
    /// The model gave a reason why it stopped.
    finish: Option<String>,
    spoke: bool,
    /// There was something of a completion, however small.
    answered: bool,
    /// There was something of what it says or does.
    begun: bool,
}

impl<'a> Answer<'a> {
    /// Asks the model, as soon as somebody wants to know.
    pub fn of(chat: &'a mut Chat) -> Self {
        Answer {
            patience: Patience::new(chat.provider.limits),
            chat,
            stage: Stage::Unasked,
            pieces: Pieces::clause_first(),
            calls: Calls::default(),
            ready: VecDeque::new(),
            failure: None,
            finish: None,
            spoke: false,
            answered: false,
            begun: false,
        }
    }

    /// Just these words, without a model.
    pub fn fixed(chat: &'a mut Chat, words: String) -> Self {
        let mut answer = Answer::of(chat);
        answer.stage = Stage::Over;
        answer.ready.push_back(Ready::Words(words));
        answer
    }

    pub fn stream(self) -> BoxStream<'a, Result<Act, Failure>> {
        stream::unfold(self, |mut answer| async move {
            answer.next().await.map(|act| (act, answer))
        })
        .boxed()
    }

    async fn next(&mut self) -> Option<Result<Act, Failure>> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                match self.hand_out(ready) {
                    Some(act) => return Some(Ok(act)),
                    None => continue,
                }
            }
            if let Some(failure) = self.failure.take() {
                return Some(Err(failure));
            }
            let step = match self.stage {
                Stage::Unasked => self.ask().await,
                Stage::Reading { .. } => self.read_on().await,
                Stage::Over => return None,
            };
            if let Err(words) = step {
                self.failure = Some(self.chat.provider.failure(&words));
                self.stage = Stage::Over;
            }
        }
    }

    fn hand_out(&mut self, ready: Ready) -> Option<Act> {
        match ready {
            Ready::Words(words) => {
                self.chat.history.said(&words);
                let text = words.trim().to_owned();
                Some(Act::Say { text, audio: None })
            }
            Ready::Calls(calls) => {
                self.ready.extend(calls.iter().cloned().map(Ready::Call));
                self.chat.history.called(calls);
                None
            }
            Ready::Call(call) => Some(Act::Call {
                id: call.id,
                name: call.function.name,
                arguments: call.function.arguments,
            }),
        }
    }

    async fn ask(&mut self) -> Result<(), String> {
        let Chat {
            provider,
            settings,
            history,
            tools,
            ..
        } = &mut *self.chat;
        let request = Request {
            model: settings.model.as_deref().unwrap_or(&provider.model),
            messages: history.for_request(),
            tools,
            stream: true,
            temperature: settings.temperature,
            max_tokens: settings.max_tokens,
            response_format: None,
        };
        let response = provider.send(&request, &mut self.patience).await;
        let response = response.map_err(|Refusal { words, .. }| words)?;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind.is_some_and(|kind| kind.contains("json")) {
            return self.read_whole(response).await;
        }
        self.stage = Stage::Reading {
            response: Box::new(response),
            events: Parser::default(),
            bytes: 0,
        };
        Ok(())
    }

    /// From a server that does not stream.
    async fn read_whole(&mut self, response: Response) -> Result<(), String> {
        let body = read(response, MAX_BODY, &mut self.patience).await?;
        self.take(&String::from_utf8_lossy(&body))?;
        if !self.answered {
            return Err("its answer holds no completion; check its address".into());
        }
        self.end()
    }

    async fn read_on(&mut self) -> Result<(), String> {
        let Stage::Reading {
            response,
            events,
            bytes,
        } = &mut self.stage
        else {
            return Ok(());
        };
        let limits = self.patience.limits;
        let limit = if self.finish.is_some() {
            AFTERMATH.min(limits.silence)
        } else {
            limits.silence
        };
        let piece = match self.patience.wait(limit, response.chunk()).await {
            Some(Ok(piece)) => piece,
            _ if self.finish.is_some() => return self.end(),
            Some(Err(error)) => return Err(format!("its answer was cut off: {}", with_cause(&error.without_url()))),
            None => return Err("it stopped in the middle of its answer".into()),
        };
        match &piece {
            Some(piece) => {
                *bytes += piece.len();
                if *bytes > MAX_BODY {
                    return Err("its answer is above 2 MiB".into());
                }
                events.push(piece)?;
            }
            None => events.finish(),
        }
        let events: Vec<Event> = std::iter::from_fn(|| events.next()).collect();
        for event in events {
            if matches!(self.stage, Stage::Reading { .. }) {
                self.take_event(&event)?;
            }
        }
        match (&self.stage, piece, &self.finish) {
            (Stage::Reading { .. }, None, None) if self.answered => Err("its answer ended in the middle".into()),
            (Stage::Reading { .. }, None, None) => Err("its answer holds no completion; check its address".into()),
            (Stage::Reading { .. }, None, Some(_)) => self.end(),
            _ => Ok(()),
        }
    }

    fn take_event(&mut self, event: &Event) -> Result<(), String> {
        match event.name.as_str() {
            _ if event.data.trim() == "[DONE]" => self.end(),
            "" | "message" => self.take(&event.data),
            "error" => {
                let error = serde_json::from_str(&event.data).unwrap_or_else(|_| event.data.as_str().into());
                Err(broke_off(&error))
            }
            // Pings, usage and whatever else somebody may invent.
            _ => Ok(()),
        }
    }

    fn take(&mut self, json: &str) -> Result<(), String> {
        let garbage = |_| {
            "it does not speak the protocol: its answer is not JSON of the right form; check its address".to_owned()
        };
        let completion: Completion = serde_json::from_str(json).map_err(garbage)?;
        if let Some(error) = &completion.error {
            return Err(broke_off(error));
        }
        let choices = completion.choices.into_iter().flatten();
        for choice in choices.filter(|choice| choice.index.is_none_or(|index| index == 0)) {
            let (delta, finish) = choice.take();
            self.answered = true;
            let mut text = delta.text();
            text.push_str(delta.refusal.as_deref().unwrap_or_default());
            if !text.is_empty() || delta.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty()) {
                self.begin();
            }
            let fits = self.pieces.push(&text);
            while let Some(words) = self.pieces.next() {
                self.say(words);
            }
            for call in delta.tool_calls.into_iter().flatten() {
                self.calls.push(call);
            }
            self.finish = finish.or(self.finish.take());
            if self.finish.is_some() {
                self.say_rest();
            }
            if !fits {
                return self.end();
            }
        }
        Ok(())
    }

    /// Once.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        if let Some(tell) = &self.chat.first_token {
            tell.came();
        }
    }

    fn say(&mut self, words: String) {
        if !words.trim().is_empty() {
            self.spoke = true;
            self.ready.push_back(Ready::Words(words));
        }
    }

    fn say_rest(&mut self) {
        if let Some(words) = self.pieces.finish() {
            self.say(words);
        }
    }

    /// Nothing more comes: the last words, then the calls.
    fn end(&mut self) -> Result<(), String> {
        self.stage = Stage::Over;
        self.say_rest();
        let calls = std::mem::take(&mut self.calls).finish(&mut self.chat.invented);
        if calls.is_empty() && !self.spoke && self.finish.as_deref() == Some("content_filter") {
            return Err("its content filter held the answer back".into());
        }
        if !calls.is_empty() {
            self.ready.push_back(Ready::Calls(calls));
        }
        Ok(())
    }
}

fn broke_off(error: &Value) -> String {
    let words = error_message(error).unwrap_or_else(|| error.to_string());
    format!("it broke off: {words}")
}
