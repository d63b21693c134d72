import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

interface Login {
  readonly deviceCode: string
  readonly userCode: string
  state: 'pending' | 'approved' | 'denied'
}

/** A small OpenID provider that knows the device grant (RFC 8628) and nothing else. */
export class DeviceProvider {
  readonly #server: Server
  readonly #logins: Login[] = []
  /** How often a token was asked for. */
  polls = 0

  constructor() {
    this.#server = createServer((request, response) => {
      void this.#answer(request).then(({ code, body }) => {
        response.writeHead(code, { 'content-type': 'application/json' })
        response.end(JSON.stringify(body))
      })
    })
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  stop(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  get issuer(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** How many logins were begun. */
  get logins(): number {
    return this.#logins.length
  }

  /** What the user does in the browser. */
  decide(userCode: string, state: 'approved' | 'denied'): void {
    const login = this.#logins.find((each) => each.userCode === userCode)
    if (!login) throw new Error('nobody was given this code')
    login.state = state
  }

  async #answer(request: IncomingMessage): Promise<{ code: number; body: object }> {
    const form = new URLSearchParams(await text(request))
    switch (request.url ?? '') {
      case '/.well-known/openid-configuration':
        return { code: 200, body: this.#configuration() }
      case '/device':
        return { code: 200, body: this.#begin() }
      case '/token':
        return this.#token(form)
      default:
        return { code: 404, body: {} }
    }
  }

  #configuration(): object {
    const { issuer } = this
    return {
      issuer,
      device_authorization_endpoint: `${issuer}/device`,
      token_endpoint: `${issuer}/token`,
    }
  }

  #begin(): object {
    const login: Login = {
      deviceCode: randomBytes(16).toString('hex'),
      userCode: `CODE-${this.#logins.length + 1}`,
      state: 'pending',
    }
    this.#logins.push(login)
    return {
      device_code: login.deviceCode,
      user_code: login.userCode,
      verification_uri: `${this.issuer}/activate\x1b[2J`,
      expires_in: 60,
      interval: 0.1,
    }
  }

  #token(form: URLSearchParams): { code: number; body: object } {
    this.polls++
    const login = this.#logins.find((each) => each.deviceCode === form.get('device_code'))
    if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:device_code' || !login) {
      return { code: 400, body: { error: 'invalid_grant' } }
    }
    if (login.state === 'pending') return { code: 400, body: { error: 'authorization_pending' } }
    if (login.state === 'denied') return { code: 400, body: { error: 'access_denied' } }
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const claims = {
      iss: this.issuer,
      sub: login.userCode,
      exp: Math.floor(Date.now() / 1000) + 600,
    }
    return { code: 200, body: { id_token: `${part({ alg: 'none' })}.${part(claims)}.` } }
  }
}
