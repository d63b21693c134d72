import { supportedMediaTypes } from '../content/index.ts'
import type { GroupVersionKind } from '../schema/index.ts'
import type { Content, Method, Operation, Parameter, Schema } from './openapi-types.ts'

type ParameterType = 'string' | 'integer' | 'boolean'

/** The query parameters of all operations. */
const parameterTypes = {
  allowWatchBookmarks: 'boolean',
  continue: 'string',
  dryRun: 'string',
  fieldManager: 'string',
  fieldSelector: 'string',
  fieldValidation: 'string',
  force: 'boolean',
  gracePeriodSeconds: 'integer',
  labelSelector: 'string',
  limit: 'integer',
  orphanDependents: 'boolean',
  pretty: 'string',
  propagationPolicy: 'string',
  resourceVersion: 'string',
  resourceVersionMatch: 'string',
  sendInitialEvents: 'boolean',
  timeoutSeconds: 'integer',
  watch: 'boolean',
} as const satisfies Record<string, ParameterType>

type ParameterName = keyof typeof parameterTypes

/** A query parameter of an operation. */
export const queryParameter = (name: ParameterName): Parameter => ({
  name,
  in: 'query',
  schema: { type: parameterTypes[name], uniqueItems: true },
})

/** A part of the path that a client fills in. */
export const pathParameter = (name: 'name' | 'namespace'): Parameter => ({
  name,
  in: 'path',
  required: true,
  schema: { type: 'string', uniqueItems: true },
})

const selection: readonly ParameterName[] = [
  'continue',
  'fieldSelector',
  'labelSelector',
  'limit',
  'resourceVersion',
  'resourceVersionMatch',
  'sendInitialEvents',
  'timeoutSeconds',
]
const deletion: readonly ParameterName[] = [
  'dryRun',
  'gracePeriodSeconds',
  'orphanDependents',
  'propagationPolicy',
]

/** What an operation does and which parameters it takes. */
interface Action {
  readonly method: Method
  /** The value of `x-kubernetes-action`. */
  readonly action: string
  /** The start of the operation's id. */
  readonly id: string
  readonly parameters: readonly ParameterName[]
}

const writing: readonly ParameterName[] = ['dryRun', 'fieldManager', 'fieldValidation']

/** The operation of each verb; `watch` is a parameter of `list`. */
const actions: Readonly<Record<string, Action>> = {
  get: { method: 'get', action: 'get', id: 'read', parameters: [] },
  list: {
    method: 'get',
    action: 'list',
    id: 'list',
    parameters: ['allowWatchBookmarks', ...selection, 'watch'],
  },
  create: { method: 'post', action: 'post', id: 'create', parameters: writing },
  update: { method: 'put', action: 'put', id: 'replace', parameters: writing },
  patch: { method: 'patch', action: 'patch', id: 'patch', parameters: [...writing, 'force'] },
  delete: { method: 'delete', action: 'delete', id: 'delete', parameters: deletion },
  deletecollection: {
    method: 'delete',
    action: 'deletecollection',
    id: 'delete',
    parameters: [...selection, ...deletion],
  },
}

const patchMediaTypes = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
]

const content = (mediaTypes: readonly string[], schema: Schema): Content =>
  Object.fromEntries(mediaTypes.map((mediaType) => [mediaType, { schema }]))

/** The schemas that operations read and answer with; asking for one adds it to the document. */
export interface OperationSchemas {
  readonly object: () => Schema
  readonly list: () => Schema
  readonly status: () => Schema
  /** What a deletion of one object answers with. */
  readonly deleted: () => Schema
  readonly patch: () => Schema
  readonly deleteOptions: () => Schema
}

function requestBody(verb: string, schemas: OperationSchemas): Pick<Operation, 'requestBody'> {
  if (verb === 'patch')
    return { requestBody: { content: content(patchMediaTypes, schemas.patch()), required: true } }
  if (verb === 'delete' || verb === 'deletecollection')
    return { requestBody: { content: content(supportedMediaTypes, schemas.deleteOptions()) } }
  if (verb !== 'create' && verb !== 'update') return {}
  return {
    requestBody: { content: content(supportedMediaTypes, schemas.object()), required: true },
  }
}

function answerSchema(verb: string, schemas: OperationSchemas): Schema {
  if (verb === 'list') return schemas.list()
  if (verb === 'delete') return schemas.deleted()
  return verb === 'deletecollection' ? schemas.status() : schemas.object()
}

function answers(verb: string, schemas: OperationSchemas): Operation['responses'] {
  const schema = answerSchema(verb, schemas)
  const answer = {
    description: 'OK',
    content: content(['application/json', 'application/yaml'], schema),
  }
  return {
    '200': answer,
    ...(verb === 'create' && { '201': { ...answer, description: 'Created' } }),
    '401': { description: 'Unauthorized' },
  }
}

/** One operation of a path. `id` names it uniquely together with the verb. */
export function operation(
  verb: string,
  kind: GroupVersionKind,
  id: { readonly tag: string; readonly suffix: string },
  schemas: OperationSchemas,
): { readonly method: Method; readonly definition: Operation } | undefined {
  const action = actions[verb]
  if (action === undefined) return undefined
  return {
    method: action.method,
    definition: {
      operationId: `${action.id}${id.suffix}`,
      tags: [id.tag],
      parameters: action.parameters.map(queryParameter),
      ...requestBody(verb, schemas),
      responses: answers(verb, schemas),
      'x-kubernetes-action': action.action,
      'x-kubernetes-group-version-kind': kind,
    },
  }
}
