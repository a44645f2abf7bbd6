//! A room's talk: from the moment at which the participant is connected to the last word.
use super::{
    hearing::{Hearing, Tell},
    line::{RoomLine, Sounds},
    wire::{Heard, Wire},
};
use crate::{
    carrier::{Control, Leg},
    clock::Busy,
    deps::Deps,
    shell::Do,
    talk::{Broken, Place, Talk},
};
use entities::transcript::{Speaker, Turn};
use futures_util::{FutureExt, future::pending};
use std::sync::Arc;
use tokio::sync::{
    broadcast::{self, error::RecvError},
    mpsc,
};

/// Holds the talk to its end, which is a command to the session; dropped early, it is cut off. The session is answered by
/// then and the sound flows: the first word comes at once. Turns are captions from this call on, not from the first poll.
pub fn begin(
    deps: &Deps,
    leg: Arc<Leg>,
    wire: Arc<Wire>,
    heard: mpsc::Receiver<Heard>,
    inbox: mpsc::Receiver<(Control, Option<Busy>)>,
) -> impl Future<Output = ()> + Send + use<> {
    let turns = deps.listeners.listen(leg.session().id);
    let deps = deps.clone();
    async move {
        if let Err(broken) = hold(&deps, &leg, wire, (heard, inbox), turns).await {
            broken.report();
        }
    }
}

type Ways = (mpsc::Receiver<Heard>, mpsc::Receiver<(Control, Option<Busy>)>);

async fn hold(
    deps: &Deps,
    leg: &Arc<Leg>,
    wire: Arc<Wire>,
    (heard, inbox): Ways,
    turns: broadcast::Receiver<(usize, Turn)>,
) -> Result<(), Broken> {
    let language = leg.agent.definition.language.to_string();
    let transcription = deps.providers.transcription.clone();
    let sounds = Sounds {
        voice: deps.studio.voice.clone(),
        language: language.clone(),
        has_ears: transcription.is_some(),
    };
    let (its, session) = (deps.clone(), leg.session());
    let tell: Tell = Arc::new(move |command| {
        if let Some(tree) = its.tree() {
            tree.sessions.tell(session, Do::tell(command, &its.clock));
        }
    });
    let (hearing, noticed) = Hearing::new(deps.clock.clone(), transcription, &language, tell, heard);
    let line = RoomLine::new(deps.clock.clone(), sounds, wire.clone(), noticed, inbox);
    let talk = Talk::of(deps, leg, line, Place::Room).await?;
    let talked = async {
        tokio::select! {
            // What has been played to its end is over before anything else is heard.
            biased;
            _ = talk.hold() => {}
            // It may end before the talk does: then nothing more is heard.
            () = hearing.run().then(|()| pending()) => {}
        }
    };
    let captions = captions(turns, &wire);
    tokio::pin!(captions);
    tokio::select! {
        () = &mut captions => return Ok(()),
        () = talked => {}
    }
    // The last words are shown too.
    captions.await;
    Ok(())
}

/// Until the call's end. What is said is shown; what tools do is not.
async fn captions(mut turns: broadcast::Receiver<(usize, Turn)>, wire: &Wire) {
    loop {
        match turns.recv().await {
            Ok((
                place,
                Turn {
                    role,
                    content: Some(text),
                    ..
                },
            )) if role != Speaker::Tool => wire.caption(place, role, text),
            // Of a page that lags behind, some captions are missing.
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}
