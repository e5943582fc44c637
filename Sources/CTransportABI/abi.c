#include "meshhost_transport.h"
