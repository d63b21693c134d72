import {
  ageColumn,
  type Column,
  column,
  type ExtraResource,
  type LiveResource,
  nameColumn,
  wideColumn,
} from '../../api/index.ts'
import type { KubeObject } from '../../core/index.ts'
import { type SessionBook, sessionKind } from './session.ts'

const text = (description: string) => ({ type: 'string', description })
const bytes = (description: string) => ({ type: 'integer', format: 'int64', description })

/** The fields of a session, for `kubectl explain` and other readers of OpenAPI. */
const sessionSchema: NonNullable<ExtraResource['schema']> = {
  description:
    'A request or tunnel of a user through the proxy, while it is open. Deleting it cuts it.',
  properties: {
    spec: {
      type: 'object',
      description: 'What is known since it began.',
      properties: {
        user: text('Who is behind it.'),
        type: {
          ...text('A request, or a tunnel that has left HTTP.'),
          enum: ['Request', 'Tunnel'],
        },
        target: text('What it leads to, as the address names it, for example services/web:80.'),
        method: text('The method of the request.'),
        endpoint: text('Where it ends.'),
        identity: text('By what the add-on learns its user, if it does.'),
        auditID: text('The request in the audit log.'),
      },
    },
    status: {
      type: 'object',
      description: 'What it has done so far.',
      properties: {
        bytesToBackend: bytes('Bytes from the client.'),
        bytesToClient: bytes('Bytes to the client.'),
        endsBefore: { ...text('When it is cut at the latest.'), format: 'date-time' },
      },
    },
  },
}

/** How API discovery shows sessions. */
export const sessionEntry: ExtraResource = {
  ...sessionKind,
  singular: 'session',
  verbs: ['delete', 'get', 'list', 'watch'],
  schema: sessionSchema,
}

const at = (object: KubeObject, part: 'spec' | 'status', field: string): string | number => {
  const fields: unknown = object[part]
  const value: unknown =
    typeof fields === 'object' && fields !== null ? Reflect.get(fields, field) : undefined
  return typeof value === 'number' || typeof value === 'string' ? value : ''
}

const columns: readonly Column[] = [
  nameColumn,
  column('User', 'Who is behind it.', (object) => at(object, 'spec', 'user')),
  column('Target', 'What it leads to.', (object) => at(object, 'spec', 'target')),
  column('Type', 'A request, or a tunnel that has left HTTP.', (object) =>
    at(object, 'spec', 'type'),
  ),
  column('Sent', 'Bytes to the client.', (object) => at(object, 'status', 'bytesToClient')),
  column('Received', 'Bytes from the client.', (object) => at(object, 'status', 'bytesToBackend')),
  ageColumn,
  wideColumn('Identity', 'By what the add-on learns its user.', (object) =>
    at(object, 'spec', 'identity'),
  ),
  wideColumn('Endpoint', 'Where it ends.', (object) => at(object, 'spec', 'endpoint')),
  wideColumn('Ends Before', 'When it is cut at the latest.', (object) =>
    at(object, 'status', 'endsBefore'),
  ),
]

/** The sessions of a proxy as objects of the API; deleting one cuts it. */
export function liveSessions(book: SessionBook): LiveResource {
  const objectOf = (session: ReturnType<SessionBook['list']>[number]): KubeObject =>
    session.toObject(String(book.revision))
  return {
    kind: sessionKind,
    columns,
    get revision() {
      return book.revision
    },
    list: (namespace) => book.list(namespace).map(objectOf),
    get: (namespace, name) => {
      const session = book.get(namespace, name)
      return session && objectOf(session)
    },
    end: (namespace, name) => {
      const session = book.get(namespace, name)
      session?.cut('deleted')
      return session !== undefined
    },
    follow: (after, listener) => book.follow(after, listener),
  }
}
