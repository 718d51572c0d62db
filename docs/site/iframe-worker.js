// Search in pages that lie in a folder: a browser starts no worker from a file, so the script of the worker runs in a frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      this.waiting = []
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.documentElement.appendChild(frame)
      const inside = frame.contentWindow
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      inside.importScripts = () => {}
      const script = frame.contentDocument.createElement("script")
      script.onload = () => {
        for (const data of this.waiting) this.send(inside, data)
        this.waiting = { push: (data) => this.send(inside, data) }
      }
      script.src = address
      frame.contentDocument.body.appendChild(script)
    }
    send(inside, data) {
      inside.dispatchEvent(new inside.MessageEvent("message", { data }))
    }
    postMessage(data) {
      this.waiting.push(data)
    }
  }
}
