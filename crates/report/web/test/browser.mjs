// A headless Chromium, driven through chromedriver (W3C WebDriver), without a network.

import { spawn } from 'node:child_process';

const ARGUMENTS = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars', '--window-size=1280,940'];
const READY = 'const done = arguments[0]; const look = () => window.prof ? done() : requestAnimationFrame(look); look()';

export class Browser {
  static async start() {
    const driver = spawn('chromedriver', ['--port=0'], { stdio: ['ignore', 'pipe', 'ignore'] });
    const port = await new Promise((found, failed) => {
      let said = '';
      driver.on('error', failed);
      driver.stdout.on('data', (text) => {
        said += text;
        const known = /successfully on port (\d+)/.exec(said);
        if (known) found(known[1]);
      });
    });
    const browser = new Browser(driver, `http://127.0.0.1:${port}`);
    const capabilities = { alwaysMatch: { 'goog:chromeOptions': { args: ARGUMENTS } } };
    const { sessionId, capabilities: found } = await browser.send('POST', '/session', { capabilities });
    browser.root += `/session/${sessionId}`;
    browser.version = `${found.browserName} ${found.browserVersion}`;
    await browser.devtools('Network.enable');
    await browser.devtools('Network.emulateNetworkConditions', { offline: true, latency: 0, downloadThroughput: 0, uploadThroughput: 0 });
    return browser;
  }

  constructor(driver, root) {
    [this.driver, this.root] = [driver, root];
  }

  async send(method, path, body) {
    const answer = await fetch(this.root + path, { method, body: body && JSON.stringify(body) });
    const { value } = await answer.json();
    if (value?.error) throw new Error(`${path}: ${value.message}`);
    return value;
  }

  devtools(cmd, params = {}) {
    return this.send('POST', '/goog/cdp/execute', { cmd, params });
  }

  async open(url) {
    // Another fragment alone would not load a page again.
    await this.send('POST', '/url', { url: 'about:blank' });
    await this.send('POST', '/url', { url });
  }

  script(script) {
    return this.send('POST', '/execute/sync', { script, args: [] });
  }

  /** Waits until a page of prof has drawn itself. */
  ready() {
    return this.send('POST', '/execute/async', { script: READY, args: [] });
  }

  /** Milliseconds of five loads until `shown` is true, which is an expression; none if one takes over a minute. */
  async firstPictures(url, shown) {
    const script = `
      const done = arguments[0];
      const look = () => requestAnimationFrame(() => ${shown} ? done(performance.now()) : look());
      look()`;
    await this.send('POST', '/timeouts', { script: 60_000, pageLoad: 60_000 });
    const times = [];
    try {
      for (let load = 0; load < 5; load++) {
        await this.open(url);
        times.push(await this.send('POST', '/execute/async', { script, args: [] }));
      }
    } catch (error) {
      return [];
    }
    return times;
  }

  async end() {
    await this.send('DELETE', '');
    this.driver.kill();
  }
}
