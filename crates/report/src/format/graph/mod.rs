//! Pictures: graphs as SVG, and the page that shows a profile in a browser.

pub mod differential;
pub mod flamechart;
pub mod flamegraph;
mod frame_names;
pub mod html;
mod page;
mod palette;
