import type { ExtraResource } from '../../../api/index.ts'

const text = (description: string) => ({ type: 'string', description })
const bytes = (description: string) => ({ type: 'integer', format: 'int64', description })

/** The fields of a session, for `kubectl explain` and other readers of OpenAPI. */
export const sessionSchema: NonNullable<ExtraResource['schema']> = {
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
