// Browsers refuse web workers to a page opened from disk (file://). There, the search's worker runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inside = this.frame.contentWindow
      const load = (source) => new Promise((resolve, reject) => {
        const script = inside.document.createElement("script")
        script.onload = resolve
        script.onerror = reject
        script.src = source
        inside.document.body.append(script)
      })
      inside.importScripts = async (...sources) => { for (const source of sources) await load(source) }
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      this.ready = load(url)
    }

    postMessage(data) {
      const inside = this.frame.contentWindow
      this.ready.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })))
    }

    terminate() { this.frame.remove() }
  }
}
