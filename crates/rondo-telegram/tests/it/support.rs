//! A bot and its server.

use rondo_http::{Network, Transport};
use rondo_telegram::{Api, BotToken};
use rondo_testkit::telegram::BotServer;

pub(crate) const TOKEN: &str = "4200000001:AAfakefakefakefakefakefakefakefake0";

pub(crate) fn api(url: &str) -> Api {
    let transport = Transport::new(Network::default()).expect("the network is usual");
    Api::new(
        transport,
        url,
        BotToken::parse(TOKEN).expect("it has the shape of one"),
    )
}

pub(crate) async fn bot() -> (BotServer, Api) {
    let server = BotServer::start(TOKEN).await;
    let api = api(&server.url());
    (server, api)
}
