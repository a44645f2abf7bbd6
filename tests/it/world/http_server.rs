//! What the world's HTTP servers have in common.
use actix_web::{App, HttpServer, dev::ServerHandle, web::ServiceConfig};
use std::net::TcpListener;

/// Serves these routes at an address of this machine, which is answered, until the handle stops it.
pub fn serve(routes: impl Fn(&mut ServiceConfig) + Clone + Send + 'static) -> (String, ServerHandle) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = HttpServer::new(move || App::new().configure(routes.clone()));
    let server = server.workers(1).disable_signals().listen(listener).unwrap().run();
    let handle = server.handle();
    actix_rt::spawn(server);
    (url, handle)
}
