import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Seen, seenIn } from '../../../src/credentials/transport/transport-lab.suite.ts'

interface OpenWatch extends Seen {
  readonly response: ServerResponse
}

/** A server's side of one kind: lists it, and sends every change to every watch, from the version that it asks for. */
export class WatchedObjects {
  readonly open = new Set<OpenWatch>()
  /** Everyone who ever asked, by their certificate and whether its session was an old one. */
  readonly seen: Seen[] = []
  /** Whose requests are refused. */
  revoked = ''
  readonly #names: string[] = []

  /** Creates an object; its version is its place in history. */
  add(name: string): void {
    this.#names.push(name)
    for (const { response } of this.open) response.write(this.#event(this.#names.length))
  }

  answer(request: IncomingMessage, response: ServerResponse): void {
    const who = seenIn(request)
    this.seen.push(who)
    if (who.commonName === this.revoked) {
      const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 401 }
      response.writeHead(401, json).end(JSON.stringify({ ...status, reason: 'Unauthorized' }))
      return
    }
    const { searchParams } = new URL(request.url ?? '', 'https://server')
    response.writeHead(200, json)
    if (searchParams.has('watch')) this.#watch(who, response, searchParams.get('resourceVersion'))
    else response.end(JSON.stringify(this.#list()))
  }

  #watch(who: Seen, response: ServerResponse, from: string | null): void {
    const watch = { ...who, response }
    this.open.add(watch)
    response.on('close', () => this.open.delete(watch))
    response.flushHeaders()
    for (let version = Number(from) + 1; version <= this.#names.length; version++)
      response.write(this.#event(version))
  }

  #object(version: number): object {
    const name = this.#names[version - 1]
    const metadata = { name, namespace: 'default', uid: name, resourceVersion: String(version) }
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata }
  }

  #event(version: number): string {
    return `${JSON.stringify({ type: 'ADDED', object: this.#object(version) })}\n`
  }

  #list(): object {
    const metadata = { resourceVersion: String(this.#names.length) }
    const items = this.#names.map((_name, index) => this.#object(index + 1))
    return { apiVersion: 'v1', kind: 'ConfigMapList', metadata, items }
  }
}

const json = { 'content-type': 'application/json' }
