import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { labAuthority, labMaterial } from '../../http/tls-lab.suite.ts'

/** A grant that the issuer was asked for. */
export interface Asked {
  readonly form: Readonly<Record<string, string>>
  readonly authorization: string | undefined
}

/** An identity provider that refreshes tokens, each refresh token once. */
export class FakeIssuer {
  readonly asked: Asked[] = []
  readonly url: string
  readonly caPem: string
  /** The next refresh token that is good. */
  refreshToken = 'refresh-0'
  /** Replaces fields of the discovery document. */
  discovery: Readonly<Record<string, unknown>> = {}
  /** Answers instead of a good one. */
  answer: ((response: ServerResponse) => void) | undefined
  /** Awaited before each answer of the token endpoint. */
  gate: Promise<void> = Promise.resolve()
  /** When new id-tokens expire. */
  expiresAt: () => number = () => 0
  readonly #server: Server

  private constructor(server: Server, caPem: string) {
    this.#server = server
    this.caPem = caPem
    this.url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on('request', (request, response) => void this.#serve(request, response))
  }

  static async start(): Promise<FakeIssuer> {
    const ca = await labAuthority()
    const { certPem, keyPem } = await labMaterial(ca)
    const server = createServer({ cert: certPem, key: keyPem.reveal() }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new FakeIssuer(server, ca.bundlePem)
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const send = (status: number, body: object): void =>
      void response.writeHead(status).end(JSON.stringify(body))
    if (request.url === '/.well-known/openid-configuration') {
      send(200, { issuer: this.url, token_endpoint: `${this.url}/token`, ...this.discovery })
      return
    }
    const form = Object.fromEntries(new URLSearchParams(await text(request)))
    this.asked.push({ form, authorization: request.headers.authorization })
    await this.gate
    if (this.answer) this.answer(response)
    else if (form['refresh_token'] !== this.refreshToken) send(400, { error: 'invalid_grant' })
    else {
      this.refreshToken = `refresh-${this.asked.length}`
      const id_token = idToken(this.expiresAt(), `new-${this.asked.length}`)
      send(200, { id_token, refresh_token: this.refreshToken })
    }
  }
}

/** A JWT whose signature nobody looks at. */
export function idToken(expiresAt: number, sub: string): string {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
  return `${encode({ alg: 'RS256' })}.${encode({ sub, exp: expiresAt / 1_000 })}.c2ln`
}
