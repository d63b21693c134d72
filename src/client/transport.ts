export type {
  RequestHeaders,
  Transport,
  TransportRequest,
  TransportResponse,
} from '../credentials/transport/index.ts'
