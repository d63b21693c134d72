import { checkHostPort, type HostPort, parseHostPort } from '../../addresses/index.ts'

/** Where connections go whose inner ClientHello asks for a name. */
export interface SniRoute {
  /** Lower case; `*.example.com` stands for any name right below that domain. */
  readonly name: string
  readonly target: HostPort
}

const serverName =
  /^(?=.{1,253}$)(?:\*\.)?[a-z\d_](?:[a-z\d_-]*[a-z\d_])?(?:\.[a-z\d_](?:[a-z\d_-]*[a-z\d_])?)*$/

/** Reads `NAME=HOST:PORT`; `undefined` for anything else. */
export function parseSniRoute(text: string): SniRoute | undefined {
  const at = text.indexOf('=')
  const name = text.slice(0, Math.max(at, 0)).toLowerCase()
  const target = parseHostPort(text.slice(at + 1))
  return serverName.test(name) && target ? { name, target } : undefined
}

/** Says what is wrong with one `--sni-route`. */
export function checkSniRoute(text: string): string | undefined {
  if (parseSniRoute(text)) return undefined
  const at = text.indexOf('=')
  const why = at > 0 ? checkHostPort(text.slice(at + 1)) : undefined
  return why === undefined ? 'must be NAME=HOST:PORT' : `must be NAME=HOST:PORT; HOST:PORT ${why}`
}
