"""Broker configs of users, TLS and SASL. Accepted for compatibility: this server speaks plain text.

The columns are those of `catalogue.read_table`.
"""

TABLE = """
authorizer.class.name | STRING | '' | | LOW | read-only | accepted
    class that decides who may do what
connection.failed.authentication.delay.ms | INT | 100 | >= 0 | LOW | read-only | accepted
    wait before a connection that failed to authenticate is closed
connections.max.reauth.ms | LONG | 0 | | MEDIUM | read-only | accepted
    time after which a SASL client must authenticate again
delegation.token.expiry.check.interval.ms | LONG | 3600000 | >= 1 | LOW | read-only | accepted
    how often expired delegation tokens are looked for
delegation.token.expiry.time.ms | LONG | 86400000 | >= 1 | MEDIUM | read-only | accepted
    life of a delegation token until it is renewed
delegation.token.max.lifetime.ms | LONG | 604800000 | >= 1 | MEDIUM | read-only | accepted
    longest life of a delegation token
delegation.token.secret.key | PASSWORD | null | | MEDIUM | read-only | accepted
    key that signs delegation tokens
principal.builder.class | CLASS | org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder | \
| MEDIUM | per-broker | accepted
    class that names the user behind a connection
sasl.client.callback.handler.class | CLASS | null | | MEDIUM | read-only | accepted
    class for callbacks of the client's SASL
sasl.enabled.mechanisms | LIST | GSSAPI | different | MEDIUM | per-broker | accepted
    SASL mechanisms that are on
sasl.jaas.config | PASSWORD | null | | MEDIUM | per-broker | accepted
    login configuration of SASL
sasl.kerberos.kinit.cmd | STRING | /usr/bin/kinit | | MEDIUM | per-broker | accepted
    path of kinit
sasl.kerberos.min.time.before.relogin | LONG | 60000 | | MEDIUM | per-broker | accepted
    least time between two Kerberos logins
sasl.kerberos.principal.to.local.rules | LIST | DEFAULT | different | MEDIUM | per-broker | accepted
    rules from Kerberos principals to users
sasl.kerberos.service.name | STRING | null | | MEDIUM | per-broker | accepted
    Kerberos name the broker runs under
sasl.kerberos.ticket.renew.jitter | DOUBLE | 0.05 | | MEDIUM | per-broker | accepted
    random share of the wait before a ticket is renewed
sasl.kerberos.ticket.renew.window.factor | DOUBLE | 0.8 | | MEDIUM | per-broker | accepted
    share of a ticket's life after which it is renewed
sasl.login.callback.handler.class | CLASS | null | | MEDIUM | read-only | accepted
    class for callbacks of the login
sasl.login.class | CLASS | null | | MEDIUM | read-only | accepted
    class that logs in
sasl.login.connect.timeout.ms | INT | null | | LOW | read-only | accepted
    connection time-out of the token provider
sasl.login.read.timeout.ms | INT | null | | LOW | read-only | accepted
    read time-out of the token provider
sasl.login.refresh.buffer.seconds | SHORT | 300 | | MEDIUM | per-broker | accepted
    time kept before a token expires
sasl.login.refresh.min.period.seconds | SHORT | 60 | | MEDIUM | per-broker | accepted
    least wait before a token is refreshed
sasl.login.refresh.window.factor | DOUBLE | 0.8 | | MEDIUM | per-broker | accepted
    share of a token's life after which it is refreshed
sasl.login.refresh.window.jitter | DOUBLE | 0.05 | | MEDIUM | per-broker | accepted
    random share of the wait before a token is refreshed
sasl.login.retry.backoff.max.ms | LONG | 10000 | | LOW | read-only | accepted
    longest wait before the token provider is asked again
sasl.login.retry.backoff.ms | LONG | 100 | | LOW | read-only | accepted
    first wait before the token provider is asked again
sasl.mechanism.controller.protocol | STRING | GSSAPI | | HIGH | read-only | accepted
    SASL mechanism towards the controller
sasl.mechanism.inter.broker.protocol | STRING | GSSAPI | | MEDIUM | per-broker | accepted
    SASL mechanism between brokers
sasl.oauthbearer.assertion.algorithm | STRING | RS256 | in any case one of es256, rs256 | MEDIUM | read-only | accepted
    signature algorithm of assertions
sasl.oauthbearer.assertion.claim.aud | STRING | null | | MEDIUM | read-only | accepted
    audience of assertions
sasl.oauthbearer.assertion.claim.exp.seconds | INT | 300 | 0 .. 86400 | LOW | read-only | accepted
    life of assertions
sasl.oauthbearer.assertion.claim.iss | STRING | null | | MEDIUM | read-only | accepted
    issuer of assertions
sasl.oauthbearer.assertion.claim.jti.include | BOOLEAN | false | | MEDIUM | read-only | accepted
    give assertions an id
sasl.oauthbearer.assertion.claim.nbf.seconds | INT | 60 | 0 .. 3600 | LOW | read-only | accepted
    how far assertions are dated back
sasl.oauthbearer.assertion.claim.sub | STRING | null | | MEDIUM | read-only | accepted
    subject of assertions
sasl.oauthbearer.assertion.file | STRING | null | | MEDIUM | read-only | accepted
    file with a ready-made assertion
sasl.oauthbearer.assertion.private.key.file | STRING | null | | MEDIUM | read-only | accepted
    key file that signs assertions
sasl.oauthbearer.assertion.private.key.passphrase | PASSWORD | null | | MEDIUM | read-only | accepted
    passphrase of that key file
sasl.oauthbearer.assertion.template.file | STRING | null | | MEDIUM | read-only | accepted
    file with claims of assertions
sasl.oauthbearer.client.credentials.client.id | STRING | null | | MEDIUM | read-only | accepted
    client id towards the token provider
sasl.oauthbearer.client.credentials.client.secret | PASSWORD | null | | MEDIUM | read-only | accepted
    client secret towards the token provider
sasl.oauthbearer.clock.skew.seconds | INT | 30 | | LOW | read-only | accepted
    difference of clocks that is forgiven
sasl.oauthbearer.expected.audience | LIST | '' | different | HIGH | read-only | accepted
    audiences a token may be meant for
sasl.oauthbearer.expected.issuer | STRING | null | | HIGH | read-only | accepted
    issuer a token must come from
sasl.oauthbearer.jwks.endpoint.refresh.ms | LONG | 3600000 | | LOW | read-only | accepted
    how often the provider's keys are read again
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms | LONG | 10000 | | LOW | read-only | accepted
    longest wait before the provider's keys are asked for again
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms | LONG | 100 | | LOW | read-only | accepted
    first wait before the provider's keys are asked for again
sasl.oauthbearer.jwks.endpoint.url | STRING | null | | MEDIUM | read-only | accepted
    address of the provider's keys
sasl.oauthbearer.jwt.retriever.class | CLASS | org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever | \
| MEDIUM | read-only | accepted
    class that gets tokens
sasl.oauthbearer.jwt.validator.class | CLASS | org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator | \
| MEDIUM | read-only | accepted
    class that checks tokens
sasl.oauthbearer.scope | STRING | null | | MEDIUM | read-only | accepted
    scope of the tokens asked for
sasl.oauthbearer.scope.claim.name | STRING | scope | | LOW | read-only | accepted
    claim that holds the scope
sasl.oauthbearer.sub.claim.name | STRING | sub | | LOW | read-only | accepted
    claim that holds the user
sasl.oauthbearer.token.endpoint.url | STRING | null | | MEDIUM | read-only | accepted
    address of the token provider
sasl.server.callback.handler.class | CLASS | null | | MEDIUM | read-only | accepted
    class for callbacks of the server's SASL
sasl.server.max.receive.size | INT | 524288 | | MEDIUM | read-only | accepted
    largest SASL message taken from a client
security.inter.broker.protocol | STRING | PLAINTEXT | one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL | MEDIUM | \
read-only | accepted
    security protocol between brokers
security.providers | STRING | null | | LOW | read-only | accepted
    classes that add Java security providers
ssl.allow.dn.changes | BOOLEAN | false | | LOW | read-only | accepted
    let a reloaded certificate have another name
ssl.allow.san.changes | BOOLEAN | false | | LOW | read-only | accepted
    let a reloaded certificate have other alternative names
ssl.cipher.suites | LIST | '' | different | MEDIUM | per-broker | accepted
    cipher suites that are on
ssl.client.auth | STRING | none | one of required, requested, none | MEDIUM | per-broker | accepted
    whether clients must show a certificate
ssl.enabled.protocols | LIST | TLSv1.2,TLSv1.3 | different | MEDIUM | per-broker | accepted
    TLS protocols that are on
ssl.endpoint.identification.algorithm | STRING | https | | LOW | per-broker | accepted
    how host names are checked against certificates
ssl.engine.factory.class | CLASS | null | | LOW | per-broker | accepted
    class that makes SSL engines
ssl.key.password | PASSWORD | null | | MEDIUM | per-broker | accepted
    password of the private key
ssl.keymanager.algorithm | STRING | SunX509 | | MEDIUM | per-broker | accepted
    algorithm of the key manager
ssl.keystore.certificate.chain | PASSWORD | null | | MEDIUM | per-broker | accepted
    certificate chain, PEM
ssl.keystore.key | PASSWORD | null | | MEDIUM | per-broker | accepted
    private key, PEM
ssl.keystore.location | STRING | null | | MEDIUM | per-broker | accepted
    file of the key store
ssl.keystore.password | PASSWORD | null | | MEDIUM | per-broker | accepted
    password of the key store
ssl.keystore.type | STRING | JKS | | MEDIUM | per-broker | accepted
    format of the key store
ssl.principal.mapping.rules | STRING | DEFAULT | | LOW | read-only | accepted
    rules from certificate names to users
ssl.protocol | STRING | TLSv1.3 | | MEDIUM | per-broker | accepted
    TLS protocol of the SSL context
ssl.provider | STRING | null | | MEDIUM | per-broker | accepted
    Java security provider for TLS
ssl.secure.random.implementation | STRING | null | | LOW | per-broker | accepted
    random generator for TLS
ssl.trustmanager.algorithm | STRING | PKIX | | MEDIUM | per-broker | accepted
    algorithm of the trust manager
ssl.truststore.certificates | PASSWORD | null | | MEDIUM | per-broker | accepted
    trusted certificates, PEM
ssl.truststore.location | STRING | null | | MEDIUM | per-broker | accepted
    file of the trust store
ssl.truststore.password | PASSWORD | null | | MEDIUM | per-broker | accepted
    password of the trust store
ssl.truststore.type | STRING | JKS | | MEDIUM | per-broker | accepted
    format of the trust store
"""
