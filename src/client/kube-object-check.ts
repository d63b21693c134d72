import { apiVersionOf, isRecord, type Kind, type KubeObject } from '../core/index.ts'
import { AnswerInvalid } from './client-errors.ts'

type NamedKind = Pick<Kind, 'group' | 'version' | 'kind'>

const isKubeObject = (value: Record<string, unknown>): value is KubeObject =>
  typeof value['kind'] === 'string' &&
  typeof value['apiVersion'] === 'string' &&
  isRecord(value['metadata']) &&
  typeof value['metadata']['name'] === 'string'

/**
 * What the server sent, as an object of `kind`. Items of a list leave out kind and apiVersion, and
 * reviews and bookmarks have no name.
 */
export function asKubeObject(value: unknown, kind: NamedKind): KubeObject {
  const sent = isRecord(value) ? value : {}
  if (isRecord(sent['metadata'])) {
    const whole: Record<string, unknown> = {
      apiVersion: apiVersionOf(kind),
      kind: kind.kind,
      ...sent,
      metadata: { name: '', ...sent['metadata'] },
    }
    if (isKubeObject(whole)) return whole
  }
  throw new AnswerInvalid(`the server sent something else than an object of kind ${kind.kind}`)
}
