import type { ServerResponse } from 'node:http'

/** Tells a client that asks for another version of WebSocket which one there is, as RFC 6455 section 4.4 has it. */
export function refuseVersion(response: ServerResponse, message: string): void {
  const code = 426
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    code,
  }
  const body = `${JSON.stringify(status)}\n`
  response.writeHead(code, {
    Connection: 'Upgrade, close',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
  })
  response.end(body)
}
