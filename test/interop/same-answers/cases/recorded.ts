import { readdirSync, readFileSync } from 'node:fs'
import { type Case, del, get, media, post, put, type Step, type Topic } from '../ask.ts'

interface Recorded {
  readonly name: string
  readonly send?: { readonly metadata: { readonly name?: string } }
  readonly stored?: { readonly metadata: { readonly name: string } }
  readonly table?: unknown
  readonly subresource?: string
}

const folder = new URL('../../../fixtures/kube-apiserver/', import.meta.url)

/** The objects of the recorded cases, each under a name of its own. */
function stepsOf(path: string, one: Recorded): Step[] {
  if (!one.stored) return [post(`${path}?dryRun=All&fieldValidation=Ignore`, one.send)]
  const own = `${path}/${one.stored.metadata.name}`
  const url = one.subresource ? `${own}/${one.subresource}` : own
  return [
    post(`${path}?fieldValidation=Ignore`, one.stored),
    put(`${url}?dryRun=All&fieldValidation=Ignore`, one.send),
    get(own, { accept: media.metadata }),
    del(own, { gracePeriodSeconds: 0 }),
  ]
}

/** The cases of one kind share names, so they come one after the other. */
function casesOf(file: string): Case[] {
  const kind = file.slice(0, -'.json'.length)
  const { path, cases } = JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as {
    path: string
    cases: Recorded[]
  }
  const own = path.replace('/namespaces/default/', '/namespaces/{ns}/')
  // Tables are a topic of their own.
  const sent = cases.filter(({ table }) => table === undefined)
  return sent.map((one) => ({
    name: `${kind}: ${one.name}`,
    lane: kind,
    steps: stepsOf(own, one),
  }))
}

/** The objects by which the rules of each kind were recorded. */
export const recorded: Topic = {
  name: 'recorded objects',
  cases: readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .flatMap(casesOf),
}
