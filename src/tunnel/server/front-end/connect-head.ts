/** What the first bytes of a client of the HTTP CONNECT front end are. */
export type ConnectHead =
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'connect'; readonly target: string; readonly length: number }
  | { readonly kind: 'fault'; readonly status: 400 | 405 | 431; readonly text: string }

/** As much as node:http takes. */
const maxHeadBytes = 16 * 1024

const headEnd = Buffer.from('\r\n\r\n')
const requestLine = /^([A-Z]+) ([!-~]+) HTTP\/1\.[01]$/
const headerLine = /^[!#$%&'*+.^_`|~\w-]+:[\t -~\x80-\xff]*$/

const fault = (status: 400 | 405 | 431, text: string): ConnectHead => ({
  kind: 'fault',
  status,
  text,
})
const notHttp = fault(400, 'this is not an HTTP request')
const tooLarge = fault(431, 'the request is too large')
const incomplete: ConnectHead = { kind: 'incomplete' }

/** Whoever speaks TLS or ends lines in another way waits for an answer and would never send the end of a head. */
function neverEnds(bytes: Buffer): boolean {
  const first = bytes[0] ?? 0
  const newline = bytes.indexOf('\n')
  return first < 0x41 || first > 0x5a || (newline >= 0 && bytes[newline - 1] !== 0x0d)
}

/**
 * Reads the head of a CONNECT request. Its headers mean nothing to a tunnel and are only checked to be headers.
 * kube-apiserver opens a connection for each request, so a parser, a request and a response of node:http
 * for each would be made to be thrown away.
 */
export function readConnectHead(bytes: Buffer): ConnectHead {
  if (bytes.length === 0) return incomplete
  if (neverEnds(bytes)) return notHttp
  const end = bytes.indexOf(headEnd)
  if (end > maxHeadBytes) return tooLarge
  if (end < 0) return bytes.length > maxHeadBytes ? tooLarge : incomplete
  const [line = '', ...headers] = bytes.toString('latin1', 0, end).split('\r\n')
  const request = requestLine.exec(line)
  if (!request || !headers.every((header) => headerLine.test(header))) return notHttp
  const [, method, target = ''] = request
  if (method !== 'CONNECT') return fault(405, 'this proxy only supports CONNECT passthrough')
  return { kind: 'connect', target, length: end + headEnd.length }
}
