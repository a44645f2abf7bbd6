//! The API, asked by the service itself: what a request meets on a connection, it meets here.
//!
//! No socket is opened for it, so it waits for no connection that others hold. Frame, key, rates and limits are the same, and so is
//! the way to the workspace's node: a request that is another node's is handed on like any other.
use actix_http::Request;
use actix_service::IntoServiceFactory;
use actix_web::{
    HttpResponse,
    body::{BoxBody, MessageBody},
    dev::{AppConfig, Service, ServiceFactory, ServiceResponse},
};
use futures_util::future::LocalBoxFuture;
use std::rc::Rc;
use tokio::sync::OnceCell;

type Answer = LocalBoxFuture<'static, HttpResponse<BoxBody>>;
type Asked = Rc<dyn Fn(Request) -> Answer>;
/// `None`: it could not be started.
type Start = Box<dyn Fn() -> LocalBoxFuture<'static, Option<Asked>>>;

/// One of each HTTP thread; it starts when it is asked first.
pub struct OwnApi {
    start: Start,
    started: OnceCell<Asked>,
}

impl OwnApi {
    /// Of an app that `build` makes.
    pub fn new<A, F, B>(build: impl Fn() -> A + 'static) -> Self
    where
        A: IntoServiceFactory<F, Request>,
        F: ServiceFactory<Request, Config = AppConfig, Response = ServiceResponse<B>, Error = actix_web::Error>
            + 'static,
        F::Service: 'static,
        B: MessageBody + 'static,
    {
        OwnApi {
            start: Box::new(move || {
                let service = build().into_factory().new_service(AppConfig::default());
                Box::pin(async move {
                    let service = Rc::new(service.await.ok()?);
                    let asked: Asked = Rc::new(move |request| Box::pin(answered(service.clone(), request)));
                    Some(asked)
                })
            }),
            started: OnceCell::new(),
        }
    }

    pub async fn ask(&self, request: Request) -> Result<HttpResponse<BoxBody>, entities::Error> {
        let start = || async { (self.start)().await.ok_or(()) };
        let asked = self.started.get_or_try_init(start).await;
        match asked {
            Ok(asked) => Ok(asked(request).await),
            Err(()) => Err(entities::Error::Internal(
                "the API does not start for the service itself".into(),
            )),
        }
    }
}

async fn answered<S, B>(service: Rc<S>, request: Request) -> HttpResponse<BoxBody>
where
    S: Service<Request, Response = ServiceResponse<B>, Error = actix_web::Error>,
    B: MessageBody + 'static,
{
    match service.call(request).await {
        Ok(response) => response.into_parts().1.map_into_boxed_body(),
        // Of a handler that has panicked: its answer is in the error.
        Err(error) => HttpResponse::from_error(error),
    }
}
