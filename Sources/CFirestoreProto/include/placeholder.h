void firestore_proto_placeholder(void);
