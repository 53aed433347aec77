"""The Flight SQL server: `bamquery serve DB --flight HOST:PORT`.

In come calls of Flight, whose commands are protobuf messages (`messages`); `server` hands each to what
answers it. Statements run in sessions of their own (`statements`), one a call, over one database; `watch`
stops those whose client has gone. Out go Arrow record batches as they come.
"""
